"""The site: a row, a page, a command and a picture for each task, and a gallery of all pictures.

`.ci/run` builds the site, with warnings as errors.
"""

import re

import pytest

from foveal.tasks.registry import all_tasks
from tests.support.docs_pages import DOCS, pictures

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
