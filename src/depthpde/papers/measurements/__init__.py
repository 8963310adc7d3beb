"""What is measured of trained weights and of this machine, beyond what a record holds: torch."""
