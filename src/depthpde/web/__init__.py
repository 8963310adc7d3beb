"""The results of a folder as live, read-only pages."""
