"""Compiled kernels of the CPU path: threads, lanes, walls, filters and steps."""
