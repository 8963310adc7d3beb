"""Tasks: what is learned, prepared once from official files or generated from a seed."""
