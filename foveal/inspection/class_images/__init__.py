"""The view `class-images`: for each class, an image made to raise its logit."""
