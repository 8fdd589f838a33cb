"""`foveal inspect WHAT [VIEW]`: look inside a run, or inside a model before its training."""

from contextlib import nullcontext
from typing import Annotated

from cyclopts import App, Parameter

from foveal.commands.inspect_page import OPEN_FLAG, open_page
from foveal.core.signals import SignalHandler
from foveal.ui.console import STDERR
from foveal.ui.standard_streams import passing_line

app = App(name="inspect", help_flags=(), version_flags=())


@app.default
def inspect(*tokens: Annotated[str, Parameter(allow_leading_hyphen=True)]) -> None:
    """Look inside a run, or inside a model before its training."""
    if OPEN_FLAG in tokens:
        open_page(tokens)
        return
    line = nullcontext() if STDERR.quiet else passing_line("foveal inspect ...")
    with SignalHandler() as signals, signals.deferred(), line:  # torch swallows exceptions while imported
        from foveal.commands import inspect_view
    inspect_view.inspect(tokens)
