"""The Python interface, which the commands are written on: train, open and use runs."""
