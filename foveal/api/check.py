"""The check of the laws, from Python and on the command line."""

from collections.abc import Collection, Mapping
from copy import deepcopy
from operator import index
from pathlib import Path
from typing import Any, SupportsIndex

from torch import nn

from foveal.api.arguments import one_or_several
from foveal.api.create_model import generators_kept
from foveal.api.errors import plain_errors
from foveal.api.results.law_table import LawTable
from foveal.api.training.options import setting
from foveal.config.old_names import flatten
from foveal.studies.check.check import Check
from foveal.studies.check.target import CheckOptions, find_target, own_module_target
from foveal.ui.console import log, silence
from foveal.ui.progress_bar import ProgressBar


@plain_errors
def check(
    target: str | Path | nn.Module,
    *,
    input: str | None = None,
    expect: str | Collection[str] = (),
    steps: SupportsIndex | None = None,
    trust_plugin: bool = False,
    quiet: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> LawTable:
    """Check that `target` keeps the laws. `foveal check` does the same.

    Raises: UserError: there is no such target, or a setting does not fit.

    Parameters
    ----------
    target
        A run folder, a preset, an image network, a plugin, `module:Class`, or a module itself.
    input
        What a module of your own takes: `tokens:100` (B, T), `vectors:16` (B, T, D), `vector:16` (B, D),
        `signal:2` (B, C, T), or `image:3x32x32`; if not given, what its first layer suggests.
    expect
        What a module of your own promises: `"causal"` (no output sees later inputs), `"set"` (the order of
        the places changes nothing), or both.
    steps
        The most steps of the training of a run that are replayed at a time; if not given, the first 10, and
        up to 1,000 between its checkpoints.
    trust_plugin
        Allow to execute the code of plugins that a run keeps.
    quiet
        Print nothing.
    settings
        Settings of the model of a preset by their keys, such as `{"model.layers": 4}`.
    """
    overrides = tuple(setting(key, value) for key, value in dict(flatten(settings or {})).items())
    with silence(quiet), generators_kept():
        whole_steps = None if steps is None else index(steps)
        options = CheckOptions(overrides, whole_steps, trust_plugin, input, frozenset(one_or_several(expect)))
        if isinstance(target, nn.Module):
            name = type(target).__name__
            return LawTable(own_module_target(name, deepcopy(target), options).check())
        return LawTable(check_named(str(target), options))


def check_named(name: str, options: CheckOptions) -> Check:
    """Check the target of a name.

    Raises: UserError or ConfigError: there is none, or an option or a setting does not fit.
    """
    with ProgressBar("replayed steps", before=f"checking the laws of {name}") as progress:
        return find_target(name, options, log, progress).check()
