"""The site: a row, a page, a command and a picture for each task, and a gallery of all pictures.

`.ci/run` builds the site, with warnings as errors.
"""

import re
import runpy

import pytest

from foveal.tasks.registry import all_tasks
from tests.support.docs_pages import DOCS, pictures

ROOT = DOCS.parent

ROW = re.compile(r"^\| `([\w-]+)` \| .+ \| `(foveal train [^`]+)` \| (.+) \|$", re.MULTILINE)


def task_rows() -> dict[str, tuple[str, list[str]]]:
    """Return the command and the pages of each task in the table of tasks."""
    rows = ROW.findall((DOCS / "tasks.md").read_text("utf-8"))
    return {task: (command, re.findall(r"\]\(([\w-]+\.md)", pages)) for task, command, pages in rows}


def test_every_task_has_a_row() -> None:
    assert task_rows().keys() == all_tasks().keys()


@pytest.mark.parametrize("task", task_rows())
def test_the_page_of_a_task_has_a_command_and_a_picture(task: str) -> None:
    for page in task_rows()[task][1]:
        text = (DOCS / page).read_text("utf-8")
        assert re.search(r"^    foveal (train|generate) ", text, re.MULTILINE), page
        assert "](pictures/" in text, page


def test_every_page_is_in_the_navigation() -> None:
    named = re.findall(
        r"^ +- (?:.+: )?(\S+\.md)$", (DOCS.parent / "mkdocs.yml").read_text("utf-8"), re.MULTILINE
    )
    own = [name for name in named if not name.startswith(("notebooks/", "project/", "reference/"))]
    assert sorted(own) == sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


def test_the_gallery_has_every_picture() -> None:
    """Its descriptions are those of the other pages."""
    others: dict[str, str] = {}
    for page in sorted(DOCS.rglob("*.md")):
        if page.name != "gallery.md":
            others |= pictures(page)
    assert others.keys() == {path.name for path in (DOCS / "pictures").iterdir()}
    assert pictures(DOCS / "gallery.md") == others


def test_warnings_fail_the_build() -> None:
    """With `--quiet`, MkDocs does not count them."""
    (command,) = [
        line for line in (ROOT / ".ci/run").read_text("utf-8").splitlines() if "mkdocs build" in line
    ]
    assert "--strict" in command
    assert not re.search(" (-q|--quiet) ", command)


def test_errors_are_sections(caplog: pytest.LogCaptureFixture) -> None:
    """Each `Raises:` of the Python interface is in a section, wherever it stands, without a warning."""
    griffe = pytest.importorskip("griffe")
    extension = runpy.run_path(str(DOCS / "raises.py"))["RaisesSections"]()
    written, shown = 0, 0
    for path in sorted((ROOT / "foveal/api").rglob("*.py")):
        code = path.read_text("utf-8")
        module = griffe.visit(path.stem, path, code)
        written += len(re.findall(r"^ +Raises: ", code, re.MULTILINE))
        for each in (module, *module.classes.values()):
            for part in (*each.functions.values(), *each.attributes.values()):
                extension.on_object(obj=part)
                sections = part.docstring.parse("auto") if part.docstring else []
                shown += sum(len(each.value) for each in sections if each.kind.value == "raises")
    assert shown == written > 50
    assert not caplog.records
