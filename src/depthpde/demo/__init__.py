"""The first two minutes: a real model looked at, a small one improved, one page."""
