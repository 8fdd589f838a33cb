"""A log that another process writes is read line by line, also if it is truncated and written anew."""

import json
from pathlib import Path

from foveal.studies.trials.records import LogFollower


def lines(*steps: int) -> str:
    return "".join(f"{json.dumps({'step': step, 'loss': 1 / step})}\n" for step in steps)


def steps(log: LogFollower) -> list[int]:
    return [record["step"] for record in log.new_records()]


def test_each_whole_line_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    log = LogFollower(path)
    assert steps(log) == []
    path.write_text(lines(1, 2) + '{"step": 3')
    assert steps(log) == [1, 2]
    path.write_text(lines(1, 2, 3, 4))
    assert steps(log) == [3, 4]


def test_a_log_that_is_truncated_and_longer_again_goes_on_with_a_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    log = LogFollower(path)
    path.write_text(lines(1, 2, 3))
    assert steps(log) == [1, 2, 3]
    path.write_text(lines(1, 22222, 3, 4, 5))
    assert steps(log) == [4, 5]
    path.write_text(lines(1))
    assert steps(log) == []
    path.write_text(lines(1, 6))
    assert steps(log) == [6]
