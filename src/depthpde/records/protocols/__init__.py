"""What an experiment fixes before its first run, and what that makes of its records."""
