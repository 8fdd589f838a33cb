"""The view `saliency`: the pixels that the logit of a class depends on, by four methods."""
