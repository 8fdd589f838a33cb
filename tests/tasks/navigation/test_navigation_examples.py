"""Walks from JSON lines: what is wrong with a row is said, and maps of any size are read."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.data import prepare_examples
from foveal.data.core.rows import SkippedRow
from foveal.data.files.data_part import open_part
from foveal.data.text.text_source import encode_text
from foveal.tasks.navigation.grid_world import FORWARD, MAP_MARGIN, RIGHT, STOP, parse_map
from tests.support.navigation_episodes import MAP_MOVES

GOOD: dict[str, Any] = {
    "map": ["####", "#..#", "#.a#", "####"],
    "instruction": "go on, stop at the table",
    "start": [1, 1, "east"],
    "path": "forward stop",
}
CONFIG = DataConfig(tokenizer="word")


def written(path: Path, *rows: dict[str, Any]) -> str:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


BAD = [
    ({"path": "forward jump"}, "its path has 'jump', which is none of left, right, forward, stop; fix it"),
    ({"path": ""}, "its path is no text of moves"),
    ({"path": ["forward"]}, "its path is no text of moves"),
    ({"path": "stop forward"}, "its path goes on after a stop; end it there"),
    ({"path": "left forward stop"}, "move 2 of its path goes against a wall or a thing"),
    ({"path": "forward right forward"}, "move 3 of its path goes against a wall or a thing"),
    ({"map": ["####", "#.#", "####"]}, "row 2 of its map has 3 squares, and the first 4; fix it"),
    ({"map": ["####", "#.z#", "####"]}, "row 2 of its map has 'z', which is none of .#abcdefghijkl; fix it"),
    ({"map": "####"}, "its map is no list of texts"),
    ({"map": []}, "its map is no list of texts"),
    ({"map": ["." * 65]}, "its map is 65 squares long, and 64 are the most; cut it"),
    ({"start": [0, 0, "east"]}, "its start, row 0 and column 0 from 0, is no floor of its map; fix it"),
    ({"start": [-3, 1, "east"]}, "is no floor of its map"),
    ({"start": [1, 1, "up"]}, "its start is no row, column and one of north, east, south, west"),
    ({"start": "1 1 east"}, "its start is no row, column and one of"),
    ({"start": [1.5, 1, "east"]}, "its start has no whole numbers"),
    ({"start": [True, 1, "east"]}, "its start has no whole numbers"),
    ({"instruction": " "}, "'instruction' is empty"),
    ({"instruction": None}, "'instruction' is null, not text"),
]


@pytest.mark.parametrize(("change", "reason"), BAD, ids=[reason[:40] for _, reason in BAD])
def test_a_row_that_can_not_be_used_is_skipped_with_the_reason(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    path = written(tmp_path / "maps.jsonl", GOOD, GOOD | change)
    skipped: list[SkippedRow] = []
    assert len([*MAP_MOVES.read(open_part(path), CONFIG, skipped)]) == 1
    assert [(one.location, one.reason.startswith(reason) or reason in one.reason) for one in skipped] == [
        (f"{path}, line 2", True)
    ]


def test_a_map_without_a_path_is_a_line(tmp_path: Path) -> None:
    asked = {name: GOOD[name] for name in ("map", "instruction", "start")}
    path = written(tmp_path / "maps.jsonl", asked)
    told = r"maps\.jsonl: no usable row, the first is line 1: no column 'path' among 'map'"
    with pytest.raises(UserError, match=told):
        list(MAP_MOVES.read(open_part(path), CONFIG, []))
    assert len([*MAP_MOVES.read_unlabeled(open_part(path), CONFIG, [])]) == 1, "to be walked it needs none"
    with pytest.raises(UserError, match=r"maps are read from JSON lines; give a \.jsonl"):
        list(MAP_MOVES.read(open_part("maps.csv"), CONFIG, []))


def test_maps_of_several_sizes_become_columns(tmp_path: Path) -> None:
    """A way about: the shortest is counted, and a stop that is left out is put in."""
    wide = {
        "map": ["......", "......"],
        "instruction": "go to the corner",
        "start": [0, 4, "north"],
        "path": "right right forward left forward left",
    }
    rows = [*MAP_MOVES.read(open_part(written(tmp_path / "maps.jsonl", GOOD, wide)), CONFIG, [])]
    processor = MAP_MOVES.make_processor("maps", rows, CONFIG)
    part = MAP_MOVES.encode(rows, processor, CONFIG, [])
    columns = {name: np.asarray(part.examples.columns[name]) for name in ("map", "start", "goal", "shortest")}
    assert columns["map"].shape == (2, 4 + 2 * MAP_MARGIN, 6 + 2 * MAP_MARGIN)
    for row, given in enumerate((GOOD, wide)):
        height, width = parse_map(given["map"]).shape
        np.testing.assert_array_equal(columns["map"][row, :height, :width], parse_map(given["map"]))
        columns["map"][row, :height, :width] = 1
    assert (columns["map"] == 1).all(), "walls"
    assert columns["start"].tolist() == [[1 + MAP_MARGIN, 1 + MAP_MARGIN, 1], [MAP_MARGIN, 4 + MAP_MARGIN, 0]]
    assert columns["goal"].tolist() == [[1 + MAP_MARGIN, 2 + MAP_MARGIN], [1 + MAP_MARGIN, 5 + MAP_MARGIN]]
    assert columns["shortest"].tolist() == part.lengths == [1, 4]
    assert part.examples.columns["target"][0].tolist() == [FORWARD, STOP]
    assert part.examples.columns["target"][1].tolist()[:2] == [RIGHT, RIGHT]
    assert part.references == ["forward stop", "right right forward left forward left stop"]
    assert processor.target.length_limit.for_source(0) == 11, "half as many again"


def test_longer_ones_than_the_model_reads_are_skipped(tmp_path: Path) -> None:
    rows = [*MAP_MOVES.read(open_part(written(tmp_path / "maps.jsonl", GOOD)), CONFIG, [])]
    processor, short = (
        MAP_MOVES.make_processor("maps", rows, CONFIG),
        CONFIG.model_copy(update={"max_length": 4}),
    )
    skipped: list[SkippedRow] = []
    assert len(MAP_MOVES.encode(rows, processor, short, skipped)) == 0
    assert "7 tokens and 2 moves, and data.max_length=4" in skipped[0].reason
    assert MAP_MOVES.encode_unlabeled(rows, processor, short, skipped)[0] == []
    assert skipped[1].reason == "7 tokens, and the model reads at most 4: cut it"


def test_a_map_is_in_one_part_with_all_its_errands(tmp_path: Path) -> None:
    rows = [
        GOOD | {"map": 2 * ["." * (3 + number)], "start": [0, 0, side]}
        for number in range(12)
        for side in ("east", "south")
    ]
    path = written(tmp_path / "maps.jsonl", *rows)
    config = CONFIG.model_copy(update={"valid_fraction": 0.25, "test_fraction": 0.25})
    prepared = prepare_examples.prepare_examples(MAP_MOVES, path, None, None, config, print)
    several: list[Any] = [prepared.train, prepared.valid, prepared.test]
    assert sum(len({one.tobytes() for one in part.examples.columns["map"]}) for part in several) == 12
    assert sum(part["examples"] for part in prepared.facts["parts"].values()) == 24


def test_inputs_come_back_as_they_were_kept(tmp_path: Path) -> None:
    rows = [*MAP_MOVES.read(open_part(written(tmp_path / "maps.jsonl", GOOD)), CONFIG, [])]
    processor = MAP_MOVES.make_processor("maps", rows, CONFIG)
    for name, content in MAP_MOVES.files(processor).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    again = MAP_MOVES.load_processor(tmp_path)
    assert MAP_MOVES.files(again) == MAP_MOVES.files(processor)
    assert (
        encode_text("stop at the moon", again.source).tolist()
        == encode_text("stop at the", processor.source).tolist()
    )
