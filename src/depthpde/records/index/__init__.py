"""A cache of what runs hold, never the truth: every row can be made again from the run's files."""
