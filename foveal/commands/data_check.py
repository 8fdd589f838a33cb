"""`foveal data check DATA`: what a careful person looks for in data before a training."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from foveal.api.data_check import check_chosen
from foveal.api.training.options import TrainingOptions
from foveal.core.signals import SignalHandler
from foveal.studies.data_check.report import check_json, check_payload, check_sections
from foveal.studies.report_files import check_report_path, write_report
from foveal.ui.console import print_json, print_sections


def check(
    data: str,
    /,
    *overrides: str,
    task: str | None = None,
    text: str | None = None,
    label: str | None = None,
    target: str | None = None,
    valid: str | None = None,
    test: str | None = None,
    out: Path | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Look through DATA before a training, as a careful person would.

    It finds rows that occur twice, within a split or across splits, or nearly so; labels that disagree;
    classes that are rare or out of balance; odd lengths and characters; empty and constant columns; images of
    one color; silent recordings; and rows that can't be used.

    Parameters
    ----------
    data
        A path or a name, as for foveal train.
    overrides
        Settings of the data, such as data.encoding=cp1252.
    task
        What is to be learned; if not given, what fits DATA.
    text
        The column of texts, or of sources if --target is given.
    label
        The column of labels.
    target
        The column of target texts.
    valid
        Held-out data that select the best weights.
    test
        Held-out data for the reported score.
    out
        A file for the report: .html, .json, .png, .svg or .pdf; or a folder for report.html, report.json and
        report.png.
    json
        Print one JSON object on standard output.
    """
    with SignalHandler():
        check_report_path(out)
        options = TrainingOptions(task=task, text=text, label=label, target=target, valid=valid, test=test)
        checked = check_chosen(data, overrides, options)
        if out is not None:
            write_report(check_payload(checked), out)
    if json:
        print_json(check_json(checked))
    else:
        print_sections(check_sections(checked))
