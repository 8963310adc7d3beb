"""D on a GPU by Triton."""
