"""Six questions, one a file, and their table."""
