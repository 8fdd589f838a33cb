"""Studies: trainings compared on equal terms."""
