"""Composition: layers become a Transformer, and the block reads as the equation."""
