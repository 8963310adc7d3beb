"""From recorded activations to measurements to verdicts."""
