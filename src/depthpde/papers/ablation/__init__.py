"""The ablation of stabilizers that all of paper B's experiments share."""
