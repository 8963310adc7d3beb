"""What is known of runs: statistics, verdicts, and what the records show; no torch."""
