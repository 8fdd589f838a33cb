"""`foveal.compare`: which architecture is best, on equal terms."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from foveal.api.comparison import ComparisonRequest, model_names
from foveal.api.errors import plain_errors
from foveal.api.interruption import interruptible
from foveal.api.results.comparison_table import ComparisonTable
from foveal.api.run import Run
from foveal.api.training.options import TrainingOptions
from foveal.api.training.stored import store_training
from foveal.core.errors import UserError
from foveal.core.runtime import resolve_device
from foveal.core.signals import Interrupted, SignalHandler
from foveal.core.terminal_text import counted
from foveal.store.manifest import MANIFEST_FILE
from foveal.studies.compare.comparison import Comparison, read_comparison, with_sequences
from foveal.studies.compare.existing import compare_runs
from foveal.studies.compare.report import comparison_payload
from foveal.studies.compare.terms import Match, make_terms
from foveal.studies.report_files import write_report
from foveal.studies.trials.trainings import train_all
from foveal.tasks.session import load
from foveal.ui.activity import Activity
from foveal.ui.console import log, silence
from foveal.ui.progress_bar import ProgressBar


@plain_errors
def compare(
    data: Any,
    *,
    models: str | Sequence[str] | None = None,
    match: Match | None = None,
    parameters: int | str | None = None,
    budget: str | None = None,
    seeds: int | None = None,
    task: str | None = None,
    text: str | None = None,
    label: str | None = None,
    target: str | None = None,
    valid: Any = None,
    test: Any = None,
    device: str = "auto",
    run: str | Path | None = None,
    quiet: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> ComparisonTable:
    """Train several models on equal terms, and compare them. `foveal compare` does the same.

    The comparison goes on where it was stopped if it is called again with the same `run`. Without `models`,
    `data` are runs that exist, which are compared on the same held-out rows.

    Raises: UserError: the data can't be read, a setting does not fit, or a model can't be made as large as
        the others.
    Raises: RunFailed: every training failed.

    Parameters
    ----------
    data, valid, test
        Data as for `foveal.train`: paths, names, or values in memory. Without `models`, runs or their paths.
    models
        Presets, networks or paths of TOML files, as a list or a text with commas between.
    match
        What is equal: "params" (if not given), "flops" or "memory" (widths are solved for), "time", "tokens",
        or "none" for presets as they are.
    parameters
        The number of parameters of all models, such as "3M"; that of the first model if not given.
    budget
        How long to train each run: 90s, 3m, 2000steps, 5epochs, 10Mtokens; 1000steps if not given, or 3m for
        `match="time"`.
    seeds
        The number of runs of each model, at least 3; 3 if not given.
    task, text, label, target
        What to learn, and the columns, as for `foveal.train`.
    device
        cpu, cuda, mps, or auto.
    run
        The folder of the comparison with all its runs; runs/DATA-compare-N if not given.
    quiet
        Print nothing.
    settings
        Settings of all models by their keys, such as `{"data.context_length": 128}`.
    """
    if models is None:
        given = {
            "match": match,
            "parameters": parameters,
            "budget": budget,
            "seeds": seeds,
            "task": task,
            "text": text,
            "label": label,
            "target": target,
            "valid": valid,
            "test": test,
            "run": run,
            "settings": settings,
        }
        check_not_given(given)
        with silence(quiet):
            return ComparisonTable(compare_existing(_run_paths(data), device))
    options = TrainingOptions(
        task=task,
        text=text,
        label=label,
        target=target,
        device=device,
        run=None if run is None else Path(run),
    )
    terms = make_terms(match, None if parameters is None else str(parameters), budget, seeds)
    stored = store_training(data, valid, test, options, settings)
    request = ComparisonRequest(stored.data, stored.overrides, stored.options, model_names(models), terms)
    with silence(quiet), interruptible() as signals:
        return ComparisonTable(compare_models(request, signals))


def check_not_given(options: Mapping[str, Any]) -> None:
    """Check that nothing is asked of trainings where runs are compared.

    Raises: UserError: an option has a value.
    """
    for name, value in options.items():
        if value is not None:
            raise UserError(f"--{name} is for models to train: name them (--models), or leave it out")


def _run_paths(data: Any) -> list[Path]:
    """Return the paths of runs.

    Raises: UserError: there are values of another type.
    """
    runs = [*data] if isinstance(data, (Sequence, Iterator)) and not isinstance(data, str) else [data]
    if not all(isinstance(each, (str, Path, Run)) for each in runs):
        raise UserError("data: expected runs or their paths; name models to train on data (--models)")
    return [each.path if isinstance(each, Run) else Path(each) for each in runs]


def compare_models(request: ComparisonRequest, signals: SignalHandler) -> Comparison:
    """Train models on equal terms, write a report into the folder of the study, and return the comparison.

    Raises: UserError or ConfigError: the data can't be read, or a setting does not fit.
    Raises: RunFailed: every training failed.
    Raises: Interrupted: a signal came; the study can go on.
    """
    planned = request.plan()
    trainings = request.trainings(planned)
    try:
        ends = train_all(trainings, request.terms.parsed_budget, signals)
    except Interrupted as stop:
        raise Interrupted(stop.number, f"; finished runs are kept; go on with: {request.command()}") from None
    comparison = read_comparison(request.folder, request.data, request.terms, planned, trainings, ends)
    comparison = _with_sequences(comparison, request.options.device)
    with Activity("writing the report"):
        write_report(comparison_payload(comparison), request.folder)
    return comparison


def compare_existing(paths: Sequence[Path], device: str) -> Comparison:
    """Return the comparison of runs on their held-out rows, which have to be the same.

    Raises: UserError: there are too few runs, one can't be opened, or their rows differ.
    """
    for path in paths:
        if not path.exists():
            raise UserError(f"{path}: there is no such run")
    runs = [path for path in paths if not path.is_dir() or (path / MANIFEST_FILE).exists()]
    for path in paths:
        if path not in runs:
            log(f"{path}: left out, since it is no run")
    if len(runs) < 2:
        raise UserError(
            f"{counted(len(runs), 'run')} to compare: name two or more, or name models to train (--models)"
        )
    resolved = resolve_device(device)
    with ProgressBar("batches", before="reading the runs") as progress:
        comparison = compare_runs(runs, lambda path: load(path, resolved), log, progress)
    return _with_sequences(comparison, device)


def _with_sequences(comparison: Comparison, device: str) -> Comparison:
    """Return the comparison with what only models of sequences have."""
    resolved = resolve_device(device)
    with ProgressBar("runs measured", before="measuring the runs") as progress, silence(True):
        return with_sequences(comparison, lambda path: load(path, resolved), log, progress)
