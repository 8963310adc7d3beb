"""One face for every page: figures, palette, formatting and tables."""
