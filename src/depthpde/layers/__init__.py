"""Learnable: one module around one operator."""
