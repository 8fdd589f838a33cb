"""What a training on many processes takes: memory, messages and time, counted on one rank without numbers."""
