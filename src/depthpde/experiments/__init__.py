"""Questions: runs, their records, grids of them, and where they are computed."""
