"""Studies around a training: settings tuned, models compared, laws checked, data checked, cost planned."""
