"""The terminal: one file a verb."""
