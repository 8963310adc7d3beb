"""One statistical idea a file: pure functions of numbers, validated by simulation."""
