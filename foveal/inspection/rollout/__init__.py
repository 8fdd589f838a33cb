"""The view `rollout`: from which inputs each position's vector is mixed, through all layers of attention."""
