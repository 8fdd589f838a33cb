"""`foveal data`: the named public data sets."""

from typing import Annotated

import cyclopts
from cyclopts import Parameter

from foveal.data.datasets import dataset_cache
from foveal.ui.console import OUTPUT, facts_table, result_line, say

app = cyclopts.App(name="data", help="List, describe or fetch the named data sets.")
Json = Annotated[bool, Parameter(negative="")]


@app.command(name="list")
def list_(*, json: Json = False) -> None:
    """List the data sets."""
    entries = dataset_cache.list_entries()
    if json:
        result_line({entry.name: entry.what for entry in entries})
        return
    facts_table([(entry.name, entry.what) for entry in entries], OUTPUT)


@app.command
def describe(name: str, /, *, json: Json = False) -> None:
    """Say where data set NAME comes from."""
    entry = dataset_cache.describe(name)
    facts = {"name": entry.name, "what": entry.what, "task": entry.task}
    facts |= {"licence": entry.licence, "size": entry.size}
    if entry.package is not None:
        facts |= {
            "package": entry.package.wanted,
            "sha256": entry.package.sha256,
        }
    if json:
        result_line(dict(facts))
        return
    facts_table(list(facts.items()), OUTPUT)


@app.command
def get(name: str, /, *, json: Json = False) -> None:
    """Fetch data set NAME into the cache and print its folder."""
    folder = dataset_cache.get(name, say)
    if json:
        result_line({"name": name, "path": str(folder)})
    else:
        print(folder)
