"""Many runs: the plan, the executors and the status of every cell."""
