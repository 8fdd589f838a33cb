"""The view `style-transfer`: an image with the content of one image and the style of another."""
