"""Hugging Face: our models by transformers' names, and the card of a repository."""
