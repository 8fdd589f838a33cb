"""Sources and targets, and the data format of a source with a target."""
