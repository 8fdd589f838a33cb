"""Data: files, sources and targets with their processors, splits, batches, and a catalogue of data sets."""
