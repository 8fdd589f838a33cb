"""`foveal data`: the named public data sets, and checks of data."""

from pathlib import Path
from typing import Annotated

import cyclopts
from cyclopts import Parameter

from foveal.api.data_check import check_chosen
from foveal.api.training.options import TrainingOptions
from foveal.core.signals import SignalHandler
from foveal.data.datasets import dataset_cache
from foveal.data.datasets.dataset_registry import registered_datasets
from foveal.inspection.files import check_payload_path, write_payload
from foveal.studies.data_check.report import check_json, check_payload, check_sections
from foveal.tasks.registry import all_tasks, dataset_task, default_task
from foveal.ui.console import STDOUT, log, print_facts, print_json, print_plain, print_sections

app = cyclopts.App(
    name="data", help="List, describe or download the named data sets, or check data of your own."
)
Json = Annotated[bool, Parameter(negative="")]


@app.command(name="list")
def list_(*, json: Json = False) -> None:
    """List the data sets."""
    all_tasks()  # tasks register data sets of their own
    entries = registered_datasets()
    if json:
        print_json({entry.name: entry.description for entry in entries})
        return
    print_facts([(entry.name, entry.description) for entry in entries], STDOUT)


@app.command
def describe(name: str, /, *, json: Json = False) -> None:
    """Show the origin, license and size of data set NAME."""
    task = dataset_task(name) or default_task()
    entry = dataset_cache.dataset_entry(name)
    facts = {"name": entry.name, "what": entry.description, "task": task.name}
    facts |= {"license": entry.license, "size": entry.size}
    if entry.package is not None:
        facts |= {
            "package": entry.package.requirement,
            "sha256": entry.package.sha256,
        }
    if json:
        print_json(dict(facts))
        return
    print_facts(list(facts.items()), STDOUT)


@app.command
def get(name: str, /, *, json: Json = False) -> None:
    """Download data set NAME into the cache, and print its folder."""
    all_tasks()
    folder = dataset_cache.get_dataset(name, log)
    if json:
        print_json({"name": name, "path": str(folder)})
    else:
        print_plain(str(folder))


@app.command
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
    json: Json = False,
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
        A file for the report: .html, .json, .png, .svg or .pdf.
    json
        Print one JSON object on standard output.
    """
    with SignalHandler():
        check_payload_path(out)
        options = TrainingOptions(task=task, text=text, label=label, target=target, valid=valid, test=test)
        checked = check_chosen(data, overrides, options)
        if out is not None:
            write_payload(check_payload(checked), out)
    if json:
        print_json(check_json(checked))
    else:
        print_sections(check_sections(checked))
