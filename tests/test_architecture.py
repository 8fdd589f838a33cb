"""A task is one thing: nothing outside a task's own file or folder knows its name or its class."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import foveal
from foveal.tasks.registry import all_tasks

PACKAGE = Path(foveal.__file__).parent
TASKS = PACKAGE / "tasks"
OLD_NAMES = PACKAGE / "config" / "old_names.py"
"""The one table of old names, which has those of every task."""


def homes() -> dict[str, Path]:
    """The file or folder of each task, by the task's name and by that of its class."""
    places: dict[str, Path] = {}
    for name, task in all_tasks().items():
        first = task.__module__.removeprefix("foveal.tasks.").split(".")[0]
        home = TASKS / first if (TASKS / first).is_dir() else TASKS / f"{first}.py"
        places |= {name: home, task.__name__: home}
    return places


def words(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of each string constant but docstrings, and of each name of a class."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value
        elif isinstance(node, ast.Name | ast.Attribute):
            name = node.id if isinstance(node, ast.Name) else node.attr
            yield from [(node.lineno, name)] * name[0].isupper()
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, alias.name) for alias in node.names if alias.name[0].isupper())


def strangers(path: Path, source: str) -> list[str]:
    """The places where a file names a task that is not its own."""
    found, known = [], homes()
    for line, word in words(ast.parse(source)):
        home = known.get(word)
        if home is not None and home != path and home not in path.parents:
            found.append(f"{path.relative_to(PACKAGE)}:{line}: {word}")
    return found


def test_no_file_names_the_task_of_another() -> None:
    assert len(homes()) > 40
    files = [path for path in sorted(PACKAGE.rglob("*.py")) if path != OLD_NAMES]
    assert [place for path in files for place in strangers(path, path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    "line",
    [
        'if config.task.name == "tagging": pass',
        'UNITS = {"masked-lm": "token"}',
        "isinstance(task, TranslationTask)",
        "from foveal.tasks.translation import TranslationTask",
        "task.MaskedLMTask",
    ],
)
def test_a_name_out_of_place_is_found(line: str) -> None:
    """The test can fail."""
    path = TASKS / "session.py"
    assert strangers(path, f"{path.read_text(encoding='utf-8')}\n{line}\n")


def test_no_file_is_longer_than_300_lines() -> None:
    lengths = {path: path.read_text(encoding="utf-8").count("\n") for path in PACKAGE.rglob("*.py")}
    assert [str(path) for path, length in lengths.items() if length > 300] == []


PRINTS = re.compile(r"(?<![\w.])print\(|sys\.std(out|err)\.write|(?<!Safe)Console\(")


def test_only_the_console_prints() -> None:
    """There, control characters in the user's labels, names and texts become escapes."""
    printing = {"foveal/cli.py", "foveal/ui/console.py", "foveal/ui/error_line.py"}
    found = {
        str(path.relative_to(PACKAGE.parent))
        for path in PACKAGE.rglob("*.py")
        if PRINTS.search(path.read_text(encoding="utf-8"))
    }
    assert found == printing


@pytest.mark.parametrize("line", ["    print(label)", "sys.stdout.write(text)", "CONSOLE = Console()"])
def test_a_file_that_prints_is_found(line: str) -> None:
    assert PRINTS.search(line)
    assert not PRINTS.search("console.print(text)")
