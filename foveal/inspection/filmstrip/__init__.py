"""The view `filmstrip`: what a run says of the frames of clips."""
