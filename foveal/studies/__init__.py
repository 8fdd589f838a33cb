"""Studies: training runs compared on equal terms."""
