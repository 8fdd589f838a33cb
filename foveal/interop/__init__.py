"""Weights in and out: torch.nn and model folders of Hugging Face."""
