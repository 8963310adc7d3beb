"""The experiments of both papers, one a file."""
