"""Trains a model on a task so that the result can be believed and taken up at any update."""
