"""The log lines of progress."""

import itertools
import time

import pytest

from foveal.core.log import each_once, log_progress


def test_a_line_now_and_then_and_when_the_rest_will_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four seconds a row."""
    clock, told = itertools.count(0.0, 4.0), list[str]()
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    assert [*log_progress(range(2000, 2008), 8, "maps", told.append)] == [*range(2000, 2008)]
    assert told == ["2 of 8 maps, about 36 s left", "5 of 8 maps, about 14 s left"]


def test_what_takes_no_time_says_nothing() -> None:
    told: list[str] = []
    assert [*log_progress("abc", 3, "letters", told.append)] == ["a", "b", "c"]
    assert told == []


def test_a_line_that_several_views_tell_is_shown_once() -> None:
    told: list[str] = []
    log = each_once(told.append)
    for line in ("rows of valid", "a map", "rows of valid", "rows of valid"):
        log(line)
    assert told == ["rows of valid", "a map"]
