"""JSON of any depth is refused in one plain line, by the one function that reads JSON."""

import json
from pathlib import Path

import pytest

import foveal
from foveal.core.parse_json import MAX_DEPTH, parse_json


@pytest.mark.parametrize("value", [1, "[", None, [], {}, [[1, {"a": [2]}]], {"a": {"b": [None, "x"]}}])
def test_values_are_read(value: object) -> None:
    assert parse_json(json.dumps(value)) == value
    assert parse_json(json.dumps(value).encode()) == value


def test_depth_is_bounded() -> None:
    assert parse_json("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    for depth in (MAX_DEPTH + 1, 900, 100_000):
        for opening, closing in (("[", "]"), ('{"a":[', "]}")):
            with pytest.raises(ValueError, match="inside each other"):
                parse_json(opening * depth + closing * depth)


def test_nothing_else_reads_json() -> None:
    package = Path(foveal.__file__).parent
    reading = [path.name for path in package.rglob("*.py") if "json.load" in path.read_text(encoding="utf-8")]
    assert reading == ["parse_json.py"]
