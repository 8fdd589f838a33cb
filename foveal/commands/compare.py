"""`foveal compare DATA --models ...`: which architecture is best, on equal terms."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from foveal.api.compare import check_not_given, compare_existing, compare_models
from foveal.api.comparison import ComparisonRequest, model_names
from foveal.api.results.comparison_table import ComparisonTable
from foveal.api.training.options import TrainingOptions
from foveal.core.signals import SignalHandler
from foveal.studies.compare.comparison import Comparison
from foveal.studies.compare.terms import Match, make_terms
from foveal.studies.report_files import check_report_path, write_report
from foveal.ui.console import print_json, print_sections


def compare(
    data: str,
    /,
    *others: str,
    models: str | None = None,
    match: Match | None = None,
    parameters: str | None = None,
    budget: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    seeds: int | None = None,
    task: str | None = None,
    text: str | None = None,
    label: str | None = None,
    target: str | None = None,
    valid: str | None = None,
    test: str | None = None,
    run: Path | None = None,
    device: str = "auto",
    out: Path | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Train several models on equal terms, or take runs that exist, and say which differ.

    All models see the same rows by the same processor, in the same batches, with the same seeds. The
    differences of their held-out losses are paired by seed. Without --models, runs are compared on the same
    held-out rows.

    Parameters
    ----------
    data
        A path or a name, as for foveal train; without --models, a run.
    others
        Settings of all models: key.sub=value, such as data.context_length=128; without --models, more runs.
    models
        Presets, networks or paths of TOML files, with commas between.
    match
        What is equal: params (if not given), flops or memory (widths are solved for), time, tokens, or none
        for presets as they are.
    parameters
        The number of parameters of all models, such as 3M; that of the first model if not given.
    budget
        How long to train each run: 90s, 3m, 2000steps, 5epochs, 10Mtokens; 1000steps if not given, or 3m for
        --match time.
    seeds
        The number of runs of each model, at least 3; 3 if not given.
    task
        What is to be learned; if not given, the task of the models.
    text
        The column of texts, or of sources if --target is given.
    label
        The column of labels.
    target
        The column of target texts.
    valid
        Held-out data that select the best weights.
    test
        Held-out data for the reported scores.
    run
        The folder of the comparison with all its runs; runs/DATA-compare-N if not given. In an existing
        folder the comparison goes on where it was stopped.
    device
        cpu, cuda, mps, or auto.
    out
        A file for the report, beside those in the folder of --run: .html, .json, .png, .svg or .pdf; or
        another folder for them.
    json
        Print one JSON object on standard output.
    """
    check_report_path(out)
    if models is None:
        given = {
            "match": match,
            "seeds": seeds,
            "parameters": parameters,
            "budget": budget,
            "task": task,
            "text": text,
            "label": label,
            "target": target,
            "valid": valid,
            "test": test,
            "run": run,
        }
        check_not_given(given)
        _print(compare_existing([Path(data), *map(Path, others)], device), out, json)
        return
    terms = make_terms(match, parameters, budget, seeds)
    options = TrainingOptions(
        task=task,
        text=text,
        label=label,
        target=target,
        valid=valid,
        test=test,
        run=run,
        device=device,
    )
    with SignalHandler() as signals:
        request = ComparisonRequest(data, others, options, model_names(models), terms)
        comparison = compare_models(request, signals)
    _print(comparison, out, json)


def _print(comparison: Comparison, out: Path | None, json: bool) -> None:
    """Write the report to a file, if one is named, and print the result."""
    result = ComparisonTable(comparison)
    if out is not None:
        write_report(result.payload(), out)
    if json:
        print_json(result.values)
    else:
        print_sections(result.sections())
