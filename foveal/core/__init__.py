"""What everything else stands on: state trees, Memory, Result, taps, runtime, errors."""
