"""XLNet, by permutation language modeling: everything that only this task has."""
