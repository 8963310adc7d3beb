"""What belongs to the shell, not to models."""
