"""Training on several processes, the ranks, over torch.distributed."""
