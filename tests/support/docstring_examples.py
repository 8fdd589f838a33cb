"""Run the examples of docstrings, and compare the names that a module imports lazily with its annotations."""

import ast
import doctest
import inspect
from types import ModuleType
from typing import Any


def examples(value: Any) -> list[doctest.Example]:
    """Return the examples in the docstring of a class or function."""
    return doctest.DocTestParser().get_examples(inspect.getdoc(value) or "")


def failures(name: str, wanted: list[doctest.Example], names: dict[str, Any]) -> str:
    """Return what the examples print in place of what they show; empty if it is the same."""
    test = doctest.DocTest(wanted, dict(names), name, name, 0, None)
    printed: list[str] = []
    doctest.DocTestRunner(verbose=False).run(test, out=printed.append)
    return "".join(printed)


def names_for_the_type_checker(module: ModuleType) -> dict[str, str | None]:
    """Return the names that a module imports below `if TYPE_CHECKING`, and from where."""
    (block,) = (node for node in ast.parse(inspect.getsource(module)).body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module for node in imports for alias in node.names}
