"""`foveal data`: the named public data sets, and checks of data."""

from typing import Annotated

import cyclopts
from cyclopts import Parameter

from foveal.data.datasets import dataset_cache
from foveal.data.datasets.dataset_registry import registered_datasets
from foveal.tasks.registry import all_tasks, dataset_task, default_task
from foveal.ui.console import STDOUT, log, print_facts, print_json, print_plain

app = cyclopts.App(
    name="data", help="List, describe or download the named data sets, or check your own data."
)
app.command("foveal.commands.data_check:check", name="check", help="Look through DATA before a training.")
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
