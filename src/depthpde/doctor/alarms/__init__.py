"""What moved first, while a model is trained."""
