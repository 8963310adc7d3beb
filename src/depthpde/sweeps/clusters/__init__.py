"""Clusters as places for runs: Ray and SLURM."""
