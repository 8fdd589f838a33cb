"""The view `gradient-flow`: how far back in time the loss reaches, of one language model or of several."""
