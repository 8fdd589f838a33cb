"""The check of data before training, from Python and on the command line."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from foveal.api.errors import plain_errors
from foveal.api.training.choose import choose
from foveal.api.training.options import TrainingOptions
from foveal.api.training.stored import store_training
from foveal.store.cache import shorten_unpacked_paths
from foveal.studies.data_check import check
from foveal.studies.data_check.check import DataCheck
from foveal.studies.data_check.finding import Finding
from foveal.tasks.registry import task_of
from foveal.ui.console import log, silence
from foveal.ui.progress_bar import ProgressBar
from foveal.ui.wording import reword


@plain_errors
def check_data(
    data: Any,
    *,
    task: str | None = None,
    text: str | None = None,
    label: str | None = None,
    target: str | None = None,
    valid: Any = None,
    test: Any = None,
    quiet: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> DataCheck:
    """Look through `data` before a training. `foveal data check` does the same.

    Raises: UserError: the data can't be read, or a setting does not fit.

    Parameters
    ----------
    data, valid, test
        Data as for `foveal.train`: paths, names, or values in memory.
    task
        What is to be learned; if not given, the task that fits the data.
    text, label, target
        The columns of texts (of sources if `target` is given), of labels, and of target texts.
    quiet
        Print nothing.
    settings
        Other settings by their keys, such as `{"data.max_length": 100}`.
    """
    options = TrainingOptions(task=task, text=text, label=label, target=target)
    stored = store_training(data, valid, test, options, settings)
    with silence(quiet):
        return check_chosen(stored.data, stored.overrides, stored.options)


def check_chosen(data: str, overrides: tuple[str, ...], options: TrainingOptions) -> DataCheck:
    """Check the data that a training with these settings would read.

    Raises: UserError or ConfigError: DATA can't be read, or a setting does not fit.
    """
    chosen = choose(data, overrides, options)
    with ProgressBar("checks", before=f"reading {data}") as progress:
        checked = check.check_data(task_of(chosen.choice.config), chosen.paths, log, progress)
    findings = tuple(map(_with_short_paths, checked.findings))
    return replace(checked, name=shorten_unpacked_paths(checked.name), findings=findings)


def _with_short_paths(finding: Finding) -> Finding:
    """Return a finding that names archives in place of unpacked files, and values in place of their files."""
    message, rows = shorten_unpacked_paths(finding.message), map(shorten_unpacked_paths, finding.rows)
    return replace(finding, message=reword(message), advice=reword(finding.advice), rows=tuple(rows))
