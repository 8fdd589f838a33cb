"""What all kinds of data share: rows, splits, examples, batches."""
