"""Speed and learning figures, one script each; how to run them is in README.md."""
