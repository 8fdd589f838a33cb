"""`foveal check-plugin FILE|PACKAGE`: what mixers, encoders, heads and views promise, checked on a plugin."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from foveal.config import suggest
from foveal.core.errors import RunFailed, UserError
from foveal.plugins.installed import installed_plugins, load_installed_plugin
from foveal.plugins.loading import Plugin, load_plugin, loaded_plugin
from foveal.plugins.references import REFERENCE
from foveal.studies.plugin_check import LawResult, law_results, named_parts, parts_without_laws
from foveal.ui.console import STDOUT, log, print_json


def check_plugin(plugin: str, /, *, json: Annotated[bool, Parameter(negative="")] = False) -> None:
    """Check that the parts of PLUGIN keep the laws of mixers, encoders, heads and views.

    The exit code is 1 if a law is broken.

    Parameters
    ----------
    plugin
        A Python file, the folder of a package, or the name of an installed plugin. `FILE.py:NAME` checks a
        single part of a file, or a class that is not registered.
    json
        Print one JSON object on standard output.
    """
    reference = REFERENCE.fullmatch(plugin)
    loaded = load_plugin(reference[1]) if reference else _load(plugin)
    parts = named_parts(loaded, reference[2]) if reference else loaded.parts
    if not parts:
        classes = "".join(f"; {plugin}:{name} checks a class" for name in loaded.definitions[:1])
        raise UserError(f"{plugin}: registers no parts (docs/plugins.md){classes}")
    results, unchecked = [*law_results(parts)], parts_without_laws(parts)
    if json:
        print_json({"plugin": loaded.name, "laws": [_to_json(result) for result in results]})
    elif results:
        STDOUT.print_table([_row(result) for result in results], drop=())
    if unchecked:
        log(f"no laws are for: {', '.join(unchecked)}")
    broken = [result for result in results if not result.holds]
    if broken:
        raise RunFailed(f"{plugin}: {'; '.join(_first_of_each_part(broken))}")


def _load(plugin: str) -> Plugin:
    """Load a plugin by its file, its folder, or the name of an installed one.

    Raises: UserError: there is no such plugin, or it can't be loaded.
    """
    if Path(plugin).exists():
        return load_plugin(plugin)
    installed = [*installed_plugins()]
    for each in installed:
        if plugin in (each.entry, each.name):
            if loaded_plugin(each.name) is None:
                load_installed_plugin(each)
            loaded = loaded_plugin(each.name)
            assert loaded is not None
            return loaded
    names = {each.entry for each in installed}
    hint = suggest(plugin, names) if names else ""
    raise UserError(f"{plugin}: no such file or folder, and no installed plugin of that name{hint}")


def _first_of_each_part(broken: list[LawResult]) -> list[str]:
    """Return the first broken law of each part in words; the others often follow from it."""
    first: dict[str, LawResult] = {}
    for result in broken:
        first.setdefault(f"{result.kind} {result.part}", result)
    return [f"{part} breaks '{result.law}': {_in_words(result)}" for part, result in first.items()]


def _row(result: LawResult) -> dict[str, str]:
    return {
        "part": f"{result.kind} {result.part}",
        "law": result.law,
        "result": "holds" if result.holds else f"BROKEN: {_in_words(result)}",
    }


def _in_words(result: LawResult) -> str:
    difference = "" if result.difference is None else f" (largest difference {result.difference:.3g})"
    return f"{result.problem}{difference}"


def _to_json(result: LawResult) -> dict[str, object]:
    return {
        "kind": result.kind,
        "part": result.part,
        "law": result.law,
        "holds": result.holds,
        "problem": result.problem,
        "difference": result.difference,
    }
