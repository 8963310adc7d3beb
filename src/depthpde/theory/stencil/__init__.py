"""Claims about the learned stencil, one a file."""
