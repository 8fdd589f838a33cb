"""One thin file for each command."""

from foveal.plugins.options import HELP as PLUGIN_HELP

COMMON_HELP = (
    f"{PLUGIN_HELP}\n\n"
    "`-q` with any command prints results, warnings and errors alone; `--debug` shows the whole traceback of "
    "an error."
)
"""The end of every command's help."""
