"""The view `filmstrip`: predictions for the frames of clips, or for whole clips."""
