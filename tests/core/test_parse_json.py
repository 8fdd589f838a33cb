"""JSON of any depth is refused in one plain line, by the one function that reads JSON."""

import ast
import json
import time
from pathlib import Path

import pytest

import foveal
from foveal.core.parse_json import MAX_DEPTH, parse_json, parse_row
from foveal.data.core.fields import repeated_name_error


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
    reading = [
        path.name
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("json.load", "json.loads")
    ]
    assert reading == ["parse_json.py"]


def test_a_key_that_is_there_twice_is_refused_in_data_alone() -> None:
    """Settings, tokenizers and runs of other programs may have one."""
    text = '{"a": {"b": 1, "b": 2}}'
    assert parse_json(text) == {"a": {"b": 2}}
    with pytest.raises(ValueError, match="the key 'b' is there twice"):
        parse_row(text)


def test_many_keys_take_no_time() -> None:
    """Twenty million comparisons of pairs took minutes."""
    names = [f"key {number}" for number in range(40_000)]
    text = "{" + ", ".join(f'"{name}": 1' for name in [*names, names[-1]]) + "}"
    start = time.perf_counter()
    with pytest.raises(ValueError, match=f"the key '{names[-1]}' is there twice"):
        parse_row(text)
    assert repeated_name_error(names) == ""
    assert repeated_name_error([*names, "", "", names[7]]).startswith(
        "the columns 8 and 40003 are both named"
    )
    assert time.perf_counter() - start < 5
