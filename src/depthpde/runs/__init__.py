"""One run: its settings, its execution, its tracking."""
