"""Several models on one task, trained from the same seeds, judged by pairs, shown on a page."""
