"""`foveal compare-finetuning DATA --from RUN`: measure how much of an encoder to train."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from foveal.api.compare_finetuning import DEFAULT_BUDGET, FinetuningRequest, compare_ways
from foveal.core.signals import SignalHandler
from foveal.studies.compare_finetuning.report import finetuning_json
from foveal.studies.report_files import check_report_path, write_report
from foveal.ui.console import print_json, print_sections


def compare_finetuning(
    data: str,
    /,
    *overrides: str,
    from_: Annotated[Path, Parameter(name="--from")],
    valid: str | None = None,
    test: str | None = None,
    run: Path | None = None,
    budget: Annotated[str, Parameter(allow_leading_hyphen=True)] = DEFAULT_BUDGET,
    device: str = "auto",
    out: Path | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Fine-tune RUN's encoder on DATA in several ways, and compare them.

    The ways are to train the head alone, the head and the last block, all layers, and another network from
    scratch.

    Parameters
    ----------
    data
        Labeled images, as for `foveal train`.
    overrides
        Settings in place of the run's: key.sub=value, such as data.image.size=96.
    from_
        A run of images whose encoder to start from, or published weights: lite0.
    valid
        Held-out data that selects the best weights; nothing is then split off from DATA.
    test
        Held-out data for the reported scores; nothing is then split off from DATA.
    run
        The folder of the four runs; runs/DATA-compare-finetuning-N if not given. In an existing folder the
        comparison continues where it was stopped.
    budget
        How long to train each way: 90s, 3m, 2000steps, 5epochs.
    device
        cpu, cuda, mps, or auto.
    out
        A file for the report, beside those in the folder of --run: .html, .json, .png, .svg or .pdf; or
        another folder for them.
    json
        Print one JSON object with the result on standard output.
    """
    check_report_path(out)
    request = FinetuningRequest(data, overrides, from_, valid, test, budget, device, run)
    with SignalHandler() as signals:
        comparison = compare_ways(request, signals)
    if out is not None:
        write_report(comparison.payload(), out)
    if json:
        print_json(finetuning_json(comparison))
    else:
        print_sections(comparison.sections())
