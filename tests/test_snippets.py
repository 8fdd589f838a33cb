"""Every Python snippet of the documentation runs: those of a page in its order, sharing their names."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.kill import own_cache
from tests.support.snippet_names import NAMES

ROOT = Path(__file__).parents[1]
PAGES = {str(path.relative_to(ROOT)): path for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))}
FENCE = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+) -->\n\n?)?^```(?P<language>\w*)\n(?P<code>.*?)^```$"
    r"(?:\n+```text\n(?P<printed>.*?)^```$)?",
    re.M | re.S,
)
"""A fenced block. A comment before it, which GitHub does not show, says why a snippet can't run. A block of
text right after a snippet has what it prints."""
LANGUAGES = {"python", "sh", "text", "toml"}


class Snippet(NamedTuple):
    """The code of a page from `line` on, why it is not run, and what it prints, if told."""

    line: int
    code: str
    reason: str | None
    printed: str | None


def snippets(page: Path) -> list[Snippet]:
    text = page.read_text(encoding="utf-8")
    return [
        Snippet(text[: found.start("code")].count("\n"), found["code"], found["reason"], found["printed"])
        for found in FENCE.finditer(text)
        if found["language"] == "python"
    ]


SNIPPETS = {name: found for name, page in sorted(PAGES.items()) if (found := snippets(page))}
NOT_RUN = {
    f"{name}:{snippet.line}": snippet.reason
    for name, found in SNIPPETS.items()
    for snippet in found
    if snippet.reason
}


@pytest.mark.parametrize("name", SNIPPETS)
def test_snippets_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_registries: None
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FOVEAL_CACHE", str(own_cache(tmp_path / "cache")))
    names = {"__name__": "snippet", **NAMES.get(name, dict)()}
    for line, code, reason, printed in SNIPPETS[name]:
        if not reason:
            # Blank lines before the code, so that a traceback has the line of the page.
            compiled = compile("\n" * line + code, str(PAGES[name]), "exec")
            with redirect_stdout(io.StringIO()) as out:
                exec(compiled, names)
            assert printed is None or out.getvalue() == printed


@pytest.mark.parametrize("place", NOT_RUN)
def test_snippets_that_are_not_run(place: str) -> None:
    pytest.skip(f"{place}: {NOT_RUN[place]}")


def test_all_code_is_found() -> None:
    """A snippet in a block without a language, or indented, would not be run."""
    assert sum(map(len, SNIPPETS.values())) >= 13
    for name, page in PAGES.items():
        text = page.read_text(encoding="utf-8")
        assert {found["language"] for found in FENCE.finditer(text)} <= LANGUAGES, name
        assert not re.search(r"^ {4}(import|from) \w+(\.\w+)*( import|$)", text, re.M), name
