"""Scripts that measure speed and learning; README.md has the commands."""
