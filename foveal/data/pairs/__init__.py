"""Sources and targets, and the format that a source and a target make together."""
