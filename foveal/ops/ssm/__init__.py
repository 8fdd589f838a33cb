"""State space models: scans, and the operations around Mamba's scan."""
