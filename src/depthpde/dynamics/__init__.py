"""The same equation, observed."""
