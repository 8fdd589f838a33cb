"""Which architecture is best, on equal terms: models trained side by side, and their differences."""
