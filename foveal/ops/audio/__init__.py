"""Audio features from waveforms."""
