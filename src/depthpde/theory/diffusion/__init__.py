"""Claims about the diffusion step and what it meets, one a file."""
