"""Where each position is in the models of each library, as data."""
