"""Sources, processors, batching, and a catalogue of named public data."""
