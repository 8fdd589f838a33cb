"""What tasks share: sources, targets, and the ways in which both are read, batched and scored."""
