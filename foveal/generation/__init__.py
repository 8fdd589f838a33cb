"""Text generation with any head: sampling, the decoding loop, beam search and streaming."""
