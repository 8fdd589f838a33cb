"""`foveal check TARGET`: the laws of a model, a run, a plugin or a module, with a verdict each."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from foveal.api.check import check_named
from foveal.core.errors import RunFailed
from foveal.core.signals import SignalHandler
from foveal.core.whole_number import WholeNumber
from foveal.plugins.references import resolve_references
from foveal.studies.check.report import check_json, check_payload, check_sections
from foveal.studies.check.target import CheckOptions
from foveal.studies.report_files import check_report_path, write_report
from foveal.ui.console import log, print_json, print_sections


def check(
    target: str,
    /,
    *overrides: str,
    input_: Annotated[str | None, Parameter(name="--input")] = None,
    expect: str = "",
    steps: WholeNumber | None = None,
    out: Path | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Check that TARGET keeps the laws: what every model promises, whatever it is made of.

    The exit code is 1 if a law is broken.

    Parameters
    ----------
    target
        A run folder; a preset, a TOML file or an image network; a plugin (a Python file, the folder of a
        package, the name of an installed one); FILE.py:NAME, a single part of a file; or your own nn.Module,
        as FILE.py:NAME or package.module:NAME of a class or a function without parameters.
    overrides
        Settings of the model of a preset, such as model.layers=4.
    input_
        What a module of your own takes: tokens:100 (B, T), vectors:16 (B, T, D), vector:16 (B, D), signal:2
        (B, C, T) or image:3x32x32; if not given, what its first layer suggests.
    expect
        What a module of your own promises: causal (no output sees later inputs), set (the order of the
        places changes nothing); both with a comma.
    steps
        The most steps of the training of a run that are replayed at a time; if not given, the first 10, and
        up to 1,000 between its checkpoints.
    out
        A file for the report: .html, .json, .png, .svg or .pdf; or a folder for report.html, report.json and
        report.png.
    json
        Print one JSON object on standard output.
    """
    with SignalHandler():
        check_report_path(out)
        expected = frozenset(filter(None, expect.split(",")))
        options = CheckOptions(resolve_references(overrides), steps, False, input_, expected)
        checked = check_named(target, options)
        if out is not None:
            write_report(check_payload(checked), out)
    for note in checked.notes:
        log(note)
    if json:
        print_json(check_json(checked))
    else:
        print_sections(check_sections(checked))
        if not checked.broken:
            log(checked.verdict)
    if checked.broken:
        raise RunFailed(checked.verdict)
