"""One measure a file: pure functions of tensors, padding left out."""
