"""Reading and writing of Hugging Face model folders, with one file for each model family."""
