"""Images: decoding, files, augmentation, batches, and examples of them."""
