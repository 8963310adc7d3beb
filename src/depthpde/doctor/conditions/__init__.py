"""What can be wrong with a model: one function a condition, from measures to one number."""
