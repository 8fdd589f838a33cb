"""How long a target may become: as in training, and longer for a longer source."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from foveal.build import build_model, build_task, kind_of
from foveal.build.kind import Given
from foveal.config import Config, from_tables
from foveal.data.buckets import gather
from foveal.data.examples import Examples, Ragged
from foveal.data.room import Room, read_room
from foveal.tasks.sequence import SequenceTask

STACK = {"width": 8, "layers": 1, "positions": {"kind": "none"}}


def test_the_longer_of_two_and_never_more_than_the_model_reads() -> None:
    room = Room.measured(longest=40, ratio=0.5, most=200)
    assert [room.of(source) for source in (1, 81, 82, 100, 266, 267, 9999)] == [61, 61, 62, 75, 200, 200, 200]
    assert Room.measured(longest=40, ratio=0.5, most=50).of(1) == 50


def test_what_older_runs_keep(tmp_path: Path) -> None:
    (tmp_path / "limit.json").write_text(json.dumps({"limit": 30}))
    assert read_room(tmp_path).of(5) == read_room(tmp_path).of(5000) == 30
    room = Room.measured(7, 0.3, 100)
    (tmp_path / "limit.json").write_text(room.to_json())
    assert read_room(tmp_path) == room


def config(longest: int) -> Config:
    encoder = STACK | {"kind": "text", "mixers": "gru"}
    return from_tables(
        {
            "task": {"name": "transduce"},
            "data": {"tokenizer": "word", "longest": longest},
            "model": STACK | {"mixers": "attentive", "encoder": encoder},
        }
    )


@pytest.mark.parametrize(("times", "longest"), [(1, 400), (2, 400), (1, 120)])
def test_a_model_of_short_rows_has_room_for_long_ones(tmp_path: Path, times: int, longest: int) -> None:
    """Trained on copies of 1 to 5 words; here it never stops, so it writes all that it may."""
    data, settings = tmp_path / "pairs.tsv", config(longest)
    rows = [" ".join("abcdefgh"[(i + j) % 8] for j in range(1 + i % 5)) for i in range(40)]
    data.write_text("source\ttarget\n" + "".join(f"{row}\t{' '.join([row] * times)}\n" for row in rows))
    kind = kind_of(settings)
    inputs = kind.prepare(settings, Given(str(data)), print).inputs
    model = build_model(settings, inputs, torch.device("cpu")).eval()
    task = build_task(settings, model, inputs)
    assert isinstance(task, SequenceTask)
    with torch.no_grad():
        model.get_parameter("head.projection.bias")[task.marks.stop] = -1e9
    for words in (2, 100):
        source = inputs.encode_source(" ".join("abcdefgh"[i % 8] for i in range(words)))
        batch = gather(Examples({"source": Ragged.from_rows([source])}), np.array([0]))
        ((written,),) = task.write(batch)
        short = 5 * times * 3 // 2 + 1
        assert len(written.tokens) == min(longest, max(short, math.ceil(1.5 * times * len(source))))
