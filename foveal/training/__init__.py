"""The training loop with its optimizers, plan, averaging and evaluation."""
