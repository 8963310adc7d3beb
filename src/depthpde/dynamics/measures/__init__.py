"""One measure a file, each a pure function of tensors."""
