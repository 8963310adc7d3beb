"""The verbs that ask many runs one question."""
