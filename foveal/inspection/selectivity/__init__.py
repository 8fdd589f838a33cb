"""The view `selectivity`: what a state space model writes into its states, and how long they keep it."""
