"""The view `neighbors`: the images nearest to an image, by features and by pixels."""
