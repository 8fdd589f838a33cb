"""`python -m foveal` is the `foveal` command."""

from foveal.cli import main

main()
