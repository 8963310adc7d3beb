"""The equation as a model: terms, integration, learned and transcribed weights."""
