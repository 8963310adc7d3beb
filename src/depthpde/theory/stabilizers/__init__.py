"""Claims of paper B about stabilizers, one a file."""
