"""Where tests and their helpers stand."""

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent


def imported_modules(source: str) -> Iterator[str]:
    """Yield the full names of modules that a file imports, and of the names that it imports from them."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = f"tests.{node.module}" if node.level else node.module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def foreign_test_modules(source: str) -> list[str]:
    """Return what a file imports from the tests, but from `tests.support`."""
    return [
        name
        for name in imported_modules(source)
        if name.split(".")[0] == "tests" and not name.startswith("tests.support.")
    ]


def test_helpers_come_from_support_alone() -> None:
    files = sorted(TESTS.rglob("*.py"))
    assert len(files) > 200
    found = {str(path.relative_to(TESTS)): foreign_test_modules(path.read_text()) for path in files}
    assert {path: names for path, names in found.items() if names} == {}
