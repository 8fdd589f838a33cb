"""Writing with any head: sampling, the step loop, beam search, and text as it streams."""
