"""The cell of the example, which is not registered here: only `--plugin` registers it."""

from pathlib import Path

from tests.support.registries import restored_registries

with restored_registries():
    from examples import own_cell
    from examples.own_cell import MinimalGated

PATH = Path(own_cell.__file__)
__all__ = ["PATH", "MinimalGated"]
