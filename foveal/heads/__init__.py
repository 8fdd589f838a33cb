"""Memory to features and logits."""
