"""State space models: scans, and what Mamba does around them."""
