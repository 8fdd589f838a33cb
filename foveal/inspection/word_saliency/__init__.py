"""The view `word-saliency`: the tokens of a text that the logit of a class depends on."""
