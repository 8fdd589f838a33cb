"""What a training on many processes takes: memory, messages and time, counted on a rank of fake tensors."""
