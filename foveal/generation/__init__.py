"""One step loop: greedy, sampling, beam, streaming."""
