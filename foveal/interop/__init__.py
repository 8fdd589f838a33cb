"""Import and export of weights: Hugging Face model folders, published weights and torch.nn modules."""
