"""Experiments whose protocol was committed before their first run, one a file."""
