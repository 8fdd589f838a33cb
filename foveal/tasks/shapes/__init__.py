"""The common parts of tasks: sources, targets, and how they are read, batched and scored."""
