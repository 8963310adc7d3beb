"""Reads records and says what they show; never trains."""
