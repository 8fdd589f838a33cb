"""Where tests and their helpers stand, and which mark each test has."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import foveal
from tests.support.marks import MARKS, mark_of

TESTS = Path(__file__).parent
PACKAGE = Path(foveal.__file__).parent
OWN_FOLDERS = {"support", "contract"}
"""Folders of tests that mirror no folder of the package."""


def imported_names(source: str) -> Iterator[str]:
    """Yield the full names of the modules that a file imports, and of what it imports from modules."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = f"tests.{node.module}" if node.level else node.module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def foreign_imports(source: str) -> list[str]:
    """Return what a file imports from the tests outside `tests.support`."""
    return [
        name
        for name in imported_names(source)
        if name.split(".")[0] == "tests" and not f"{name}.".startswith("tests.support.")
    ]


def folders_without_package(tests: Path, package: Path) -> list[str]:
    """Return the folders of tests that have no folder of the same name in the package."""
    files = [path.relative_to(tests) for path in sorted(tests.rglob("test_*.py"))]
    folders = sorted({str(path.parent) for path in files if path.parts[0] not in OWN_FOLDERS})
    return [folder for folder in folders if not (package / folder).is_dir()]


def test_helpers_come_from_support_alone() -> None:
    files = sorted(TESTS.rglob("*.py"))
    assert len(files) > 200
    found = {str(path.relative_to(TESTS)): foreign_imports(path.read_text("utf-8")) for path in files}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "line",
    [
        "from tests.training.test_optim import NAMES",
        "from tests.training import test_optim",
        "import tests.training.test_optim",
        "from . import test_optim",
        "from .test_optim import NAMES",
    ],
)
def test_an_import_from_another_test_is_found(line: str) -> None:
    assert foreign_imports(f"from tests.support import mixer_laws\n\ndef test() -> None:\n    {line}\n")


def test_folders_mirror_the_package() -> None:
    assert folders_without_package(TESTS, PACKAGE) == []


def test_a_folder_of_its_own_is_found(tmp_path: Path) -> None:
    for name in ("core", "contract", "colors"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "test_one.py").touch()
    assert folders_without_package(tmp_path, PACKAGE) == ["colors"]


def test_helpers_are_no_tests() -> None:
    assert [path.name for path in (TESTS / "support").rglob("test_*.py")] == []


@pytest.mark.parametrize(
    ("path", "mark"),
    [
        ("commands/test_train.py", "command_line"),
        ("contract/test_expert_balance.py", "contract"),
        ("layers/test_laws.py", "contract"),
        ("layers/test_laws_at_extremes.py", "contract"),
        ("layers/mixers/test_s5.py", "unit"),
        ("test_docs.py", "unit"),
    ],
)
def test_the_folder_gives_the_mark(path: str, mark: str) -> None:
    assert (TESTS / path).is_file()
    assert mark_of(Path(path)) == mark


def test_each_test_has_one_mark(request: pytest.FixtureRequest) -> None:
    """All tests together are those of the three marks, each one once."""
    marks = {
        item.nodeid: [m.name for m in item.iter_markers() if m.name in MARKS]
        for item in request.session.items
    }
    assert {test: names for test, names in marks.items() if len(names) != 1} == {}
