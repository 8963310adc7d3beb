"""Space: pure functions of fields. No modules, no parameters, no randomness, no files."""
