"""A person's own data: checked, read into arrays, written as a prepared task."""
