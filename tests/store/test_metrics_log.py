"""Logs: plain JSON, cut back exactly."""

import json
from pathlib import Path

import pytest

from foveal.core.errors import UserError
from foveal.store.metrics_log import JsonlLog


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "metrics.jsonl").touch()
    return tmp_path / "metrics.jsonl"


def test_numbers_json_does_not_have_become_null(path: Path) -> None:
    log = JsonlLog(path)
    log.write({"a": float("nan"), "b": {"c": float("-inf"), "d": 0.1}, "e": "NaN", "f": [[float("inf")]]})
    log.close()

    def refuse(name: str) -> None:
        raise AssertionError(f"bare {name}")

    (line,) = path.read_text().splitlines()
    assert json.loads(line, parse_constant=refuse) == {
        **{"a": None, "b": {"c": None, "d": 0.1}, "e": "NaN"},
        "f": [[None]],
    }


def test_a_line_is_there_as_soon_as_it_is_written(path: Path) -> None:
    log = JsonlLog(path)
    log.write({"step": 1})
    assert path.read_text() == '{"step": 1}\n'
    log.close()


def test_cut_and_go_on(path: Path) -> None:
    log = JsonlLog(path)
    log.write({"step": 1})
    offset = log.offset()
    log.write({"step": 2})
    log.close()
    path.write_bytes(path.read_bytes() + b'{"ste')
    again = JsonlLog(path)
    again.truncate(offset)
    again.write({"step": 3})
    again.close()
    assert path.read_text() == '{"step": 1}\n{"step": 3}\n'


def test_a_log_shorter_than_promised_is_not_padded(path: Path) -> None:
    log = JsonlLog(path)
    with pytest.raises(UserError, match="shorter than its checkpoint says"):
        log.truncate(5)
    log.close()
    assert path.read_bytes() == b""
