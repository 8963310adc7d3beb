"""How each task is read from official files or generated, one a file."""
