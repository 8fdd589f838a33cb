"""Data: files, sources and targets with their processors, splits, batches, and a catalog of data sets."""
