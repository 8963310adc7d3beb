"""Methods that know the error of their step, one kind a file."""
