"""Paired differences, intervals and exact p-values: pure functions of numbers."""
