"""The same layer in models people already have."""
