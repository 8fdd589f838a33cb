"""One thin file for each command."""
