"""What is known of runs: plain files, their statistics and verdicts, readable without torch."""
