"""Logs: plain JSON, cut back exactly."""

import hashlib
import json
from pathlib import Path

import pytest

from foveal.core.errors import UserError
from foveal.store.metrics_log import JsonlLog, LogPosition


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
    position = log.position()
    log.write({"step": 2})
    log.close()
    path.write_bytes(path.read_bytes() + b'{"ste')
    again = JsonlLog(path)
    again.truncate(position)
    again.write({"step": 3})
    again.close()
    assert path.read_text() == '{"step": 1}\n{"step": 3}\n'


def test_a_log_shorter_than_promised_is_not_padded(path: Path) -> None:
    log = JsonlLog(path)
    with pytest.raises(UserError, match="shorter than its checkpoint says"):
        log.truncate(LogPosition(5))
    log.close()
    assert path.read_bytes() == b""


@pytest.mark.parametrize("edit", [(b"1", b"2"), (b"step", b"stop"), (b"}\n", b"}\r")])
def test_an_edited_line_before_the_position_is_refused(path: Path, edit: tuple[bytes, bytes]) -> None:
    """A changed digit would be valid JSON, so only the hash notices."""
    log = JsonlLog(path)
    log.write({"step": 1})
    position = log.position()
    log.write({"step": 2})
    log.close()
    first, rest = path.read_bytes().split(b"\n", 1)
    path.write_bytes((first + b"\n").replace(*edit) + rest)
    again = JsonlLog(path)
    with pytest.raises(UserError, match=r"metrics\.jsonl: its lines are not those that its checkpoint"):
        again.truncate(position)
    again.close()


def test_a_log_goes_on_with_the_hash_of_what_it_keeps(path: Path) -> None:
    log = JsonlLog(path)
    log.write({"step": 1})
    log.close()
    again = JsonlLog(path)
    again.truncate(LogPosition(12))
    again.write({"step": 2})
    content = path.read_bytes()
    assert again.position() == LogPosition(len(content), hashlib.sha256(content).hexdigest())
    again.close()
