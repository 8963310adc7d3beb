"""Claims about diffusion inside attention, one a file."""
