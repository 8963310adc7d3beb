"""The equation as a model: systems of the gallery, their pages, phase diagrams."""
