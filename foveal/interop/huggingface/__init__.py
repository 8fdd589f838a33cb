"""Model folders of Hugging Face, read and written: one file a model family."""
