"""Every view of every kind of run: whatever its options are, it gives a payload or one plain line."""

import json
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, get_type_hints

import pytest

from benchmarks.kill import own_cache
from foveal.api.view import compute_payload, fitting_views
from foveal.core.errors import UserError
from foveal.core.progress import no_progress
from foveal.core.whole_number import WholeNumber
from foveal.inspection.files import SUFFIXES, payload_file
from foveal.inspection.payload import Payload
from foveal.inspection.registry import VIEWS
from tests.support.more_untrained_runs import HOSTILE_WORDS, MORE_KINDS
from tests.support.untrained_runs import KINDS, UntrainedRun

ALL_KINDS = KINDS | MORE_KINDS
FAST = ("text-classification", "image-classification")
"""The kinds that are tested at every change; all of them take long."""
EVERY_KIND = [kind if kind in FAST else pytest.param(kind, marks=pytest.mark.slow) for kind in ALL_KINDS]
EVERY_SUFFIX = ("hybrid", "translation", "image-classification", "hostile-text")
"""The kinds whose views are written in every format: together they have each view."""
WHOLE_NUMBERS, NUMBERS = (-1, 2**70), (float("nan"), float("inf"), -1.0, 1e300)
TEXTS = ("", " \n", "a", "\0", "a\ud800", *HOSTILE_WORDS)
SHORT: dict[str, Any] = {"steps": 2, "tokens": 3, "count": 3}
"""Options that make a view cheap."""
FILES = {
    "empty.txt": b"",
    "blank.csv": b"\n\n",
    "other.csv": b"foo,bar\n1,2\n",
    "half.png": b"\x89PNG\r\n\x1a\n123",
}
"""Data of no task."""
_made: dict[str, UntrainedRun] = {}


@pytest.fixture(autouse=True)
def here(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path_factory.mktemp("here")
    monkeypatch.setenv("FOVEAL_CACHE", str(own_cache(tmp_path_factory.getbasetemp() / "cache")))
    monkeypatch.chdir(folder)
    for name, content in FILES.items():
        (folder / name).write_bytes(content)


def run_of(kind: str) -> UntrainedRun:
    if kind not in _made:
        _made[kind] = ALL_KINDS[kind]()
    return _made[kind]


def cheap(view: Any, **options: Any) -> Any:
    """Return a view's options, with those that make it cheap."""
    names = {field.name for field in fields(view.Options)}
    return view.Options(**{name: value for name, value in SHORT.items() if name in names} | options)


def payload_or_line(view: Any, run: UntrainedRun, **options: Any) -> Payload | None:
    """Return the payload; nothing where the view refuses in one plain line."""
    payload, line = None, "computed"
    try:
        payload = compute_payload(view, run, cheap(view, **options), False, lambda line: None, no_progress)
    except UserError as error:
        line = str(error)
    assert line.strip(), (view.name, options)
    assert "\n" not in line, (view.name, options)
    if payload is None:
        return None
    json.dumps(payload.to_json(), allow_nan=False)
    assert not any("nan" in value.lower().split() for _, value in payload.facts), (view.name, options)
    return payload


def wrong_options(view: Any) -> Iterator[dict[str, Any]]:
    """Yield values of each option of a view that it can hardly have meant."""
    hints = get_type_hints(view.Options)
    for field in fields(view.Options):
        hint, name = str(hints[field.name]), field.name
        if name == "text":
            yield from ({name: text} for text in TEXTS)
        elif name in ("data", "query", "style"):
            yield from ({name: file} for file in ("missing", *FILES))
        elif "int" in hint:
            yield from ({name: number} for number in WHOLE_NUMBERS)
        elif "float" in hint:
            yield from ({name: number} for number in NUMBERS)
        elif "tuple" in hint:
            yield {name: ("missing",)}
        elif "str" in hint:
            yield from ({name: text} for text in ("", "nope", "/[/", "-1"))


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_wrong_options_are_refused_in_a_line(kind: str) -> None:
    run = run_of(kind)
    for view in fitting_views(run)[0]:
        for options in wrong_options(view):
            payload_or_line(view, run, **options)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ALL_KINDS)
def test_each_view_is_drawn_and_has_its_control(kind: str) -> None:
    run = run_of(kind)
    for view in fitting_views(run)[0]:
        payload = payload_or_line(view, run)
        if payload is None:
            continue
        for suffix in SUFFIXES if kind in EVERY_SUFFIX else (".png", ".html"):
            assert payload_file(payload, suffix), (view.name, suffix)
        if view.depends_on_weights:
            both = compute_payload(view, run, cheap(view), True, lambda line: None, no_progress)
            assert len(both.panels) >= len(payload.panels), view.name


@pytest.mark.parametrize("name", VIEWS)
def test_whole_numbers_are_read_as_such(name: str) -> None:
    """A number such as 2.7 is refused on the command line, where a plain `int` would be rounded."""
    hints = get_type_hints(VIEWS[name].Options, include_extras=True)
    for option, hint in hints.items():
        assert "int" not in str(hint).replace(str(WholeNumber), ""), option
