"""Named families and sizes."""
