"""A diagnosis, and two of them side by side, as pages."""
