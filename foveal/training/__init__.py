"""One loop, its optimisers, plan, checkpoints and logs."""
