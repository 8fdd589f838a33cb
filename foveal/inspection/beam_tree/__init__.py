"""The view `beam-tree`: the hypotheses of a beam search, kept, pruned and finished."""
