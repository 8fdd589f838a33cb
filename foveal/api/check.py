"""The check of the laws, from Python and on the command line."""

from collections.abc import Mapping
from operator import index
from pathlib import Path
from typing import Any, SupportsIndex

from foveal.api.create_model import generators_kept
from foveal.api.errors import plain_errors
from foveal.api.results.law_table import LawTable
from foveal.api.training.options import setting
from foveal.config.old_names import flatten
from foveal.studies.check.check import Check
from foveal.studies.check.target import CheckOptions, find_target
from foveal.ui.activity import Activity
from foveal.ui.console import log, silence


@plain_errors
def check(
    target: str | Path,
    *,
    steps: SupportsIndex = 10,
    trust_plugin: bool = False,
    quiet: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> LawTable:
    """Check that `target` keeps the laws. `foveal check` does the same.

    Raises: UserError: there is no such target, or a setting does not fit.

    Parameters
    ----------
    target
        A run folder, a preset, an image network, or a plugin.
    steps
        Steps of the training of a run that are replayed.
    trust_plugin
        Allow to execute the code of plugins that a run keeps.
    quiet
        Print nothing.
    settings
        Settings of the model of a preset by their keys, such as `{"model.layers": 4}`.
    """
    overrides = tuple(setting(key, value) for key, value in dict(flatten(settings or {})).items())
    with silence(quiet), generators_kept():
        return LawTable(check_named(str(target), overrides, CheckOptions(index(steps), trust_plugin)))


def check_named(name: str, overrides: tuple[str, ...], options: CheckOptions) -> Check:
    """Check the target of a name.

    Raises: UserError or ConfigError: there is none, or a setting does not fit.
    """
    with Activity(f"checking the laws of {name}"):
        return find_target(name, overrides, options, log).check()
