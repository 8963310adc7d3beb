"""Whether a record is as it was written: checksums, shapes, totals."""
