"""The view `contributions`: how much each part of a source made each token of a text likelier."""
