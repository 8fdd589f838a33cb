"""How long a target may become: as in training, and longer for a longer source."""

import json
import math
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch

from foveal.config import Config, DataConfig, TokenizerName
from foveal.data.audio.audio_features import LogMelSettings
from foveal.data.core.examples import Examples, RaggedArray
from foveal.data.core.length_buckets import collate_examples
from foveal.data.core.rows import Row
from foveal.data.open import DataPaths
from foveal.data.text.length_limit import LengthLimit, load_length_limit, max_token_count
from foveal.data.text.text_source import encode_text
from foveal.data.text.tokenizers import WordTokenizer, make_tokenizer
from foveal.objectives.sequence_to_sequence import SequenceToSequenceObjective
from foveal.tasks.config import from_tables
from foveal.tasks.registry import task_of
from foveal.tasks.session import build_model
from tests.support.pair_formats import CLIP_TEXT, IMAGE_TEXT, SPEECH, TEXT_PAIRS, WRITTEN_ANSWERS
from tests.support.recorded_calls import record_calls

STACK = {"width": 8, "layers": 1, "positions": {"kind": "none"}}


def test_the_longer_of_two_and_never_more_than_the_model_reads() -> None:
    limit = LengthLimit.from_lengths(max_length=40, ratio=0.5, maximum=200)
    assert [limit.for_source(source) for source in (1, 81, 82, 100, 266, 267, 9999)] == [
        61,
        61,
        62,
        75,
        200,
        200,
        200,
    ]
    assert LengthLimit.from_lengths(max_length=40, ratio=0.5, maximum=50).for_source(1) == 50


def test_what_older_runs_keep(tmp_path: Path) -> None:
    (tmp_path / "limit.json").write_text(json.dumps({"limit": 30}))
    assert load_length_limit(tmp_path).for_source(5) == load_length_limit(tmp_path).for_source(5000) == 30
    limit = LengthLimit.from_lengths(7, 0.3, 100)
    (tmp_path / "limit.json").write_text(limit.to_json())
    assert load_length_limit(tmp_path) == limit


@pytest.mark.parametrize("kind", ["character", "byte", "word", "bpe"])
def test_the_most_tokens_are_not_those_of_the_most_characters(kind: TokenizerName) -> None:
    chance = Random(0)
    words = ["congratulations", "on", "the", "table", "\u2603\u2603", "a", ""]
    for _ in range(50):
        texts = [" ".join(chance.choices(words, k=chance.randrange(6))) for _ in range(8)]
        tokenizer = make_tokenizer(kind, 280, texts)
        assert max_token_count(tokenizer, texts) == max(len(tokenizer.encode(text)) for text in texts)
        known = tokenizer.encode_known("none of those")[0]
        assert max_token_count(tokenizer, ["none of those"]) == len(known)


def test_of_many_texts_few_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = record_calls(monkeypatch, WordTokenizer, "encode_known")
    texts = ["congratulations", "on the table", "a b", "a"] * 500
    assert max_token_count(make_tokenizer("word", 0, texts), texts) == 3
    assert [text for _, text in encoded] == ["congratulations", "on the table"]


SIDE = 8
MAKERS: dict[str, Any] = {
    "pairs": TEXT_PAIRS.make_processor,
    "captions": IMAGE_TEXT.make_processor,
    "clips": CLIP_TEXT.make_processor,
    "recordings": SPEECH.make_processor,
    "replies": WRITTEN_ANSWERS.make_processor,
}


@pytest.mark.parametrize("name", MAKERS)
def test_there_is_room_for_the_most_tokens(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LogMelSettings, "frames", lambda settings, path: np.eye(3, dtype=np.float32))
    picture = np.arange(3 * SIDE * SIDE, dtype=np.uint8).reshape(SIDE, SIDE, 3)
    fields = {
        "source": "a b",
        "question": "a?",
        "content": "",
        "picture": picture,
        "frames": picture[None],
        "file": Path("a"),
    }
    rows = [
        Row(text, fields | {"target": text, "answer": text}) for text in ("congratulations", "on the table")
    ]
    processor = MAKERS[name]("data", rows, DataConfig(tokenizer="word"))
    assert processor.target.length_limit.limit == int(1.5 * 3) + 1


def config(max_length: int) -> Config:
    encoder = STACK | {"kind": "text", "mixers": "gru"}
    return from_tables(
        {
            "task": {"name": "transduction"},
            "data": {"tokenizer": "word", "max_length": max_length},
            "model": STACK | {"mixers": "attention-rnn", "encoder": encoder},
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize(("times", "max_length"), [(1, 400), (2, 400), (1, 120)])
def test_a_model_of_short_rows_has_room_for_long_ones(tmp_path: Path, times: int, max_length: int) -> None:
    """Trained on copies of 1 to 5 words; here it never stops, so it writes all that it may."""
    data, settings = tmp_path / "pairs.tsv", config(max_length)
    rows = [" ".join("abcdefgh"[(i + j) % 8] for j in range(1 + i % 5)) for i in range(40)]
    data.write_text("source\ttarget\n" + "".join(f"{row}\t{' '.join([row] * times)}\n" for row in rows))
    processor = task_of(settings).prepare(DataPaths(str(data)), print).processor
    task = task_of(settings).bind(processor)
    model = build_model(task, torch.device("cpu")).eval()
    objective = task.bind(processor, model).objective()
    assert isinstance(objective, SequenceToSequenceObjective)
    with torch.no_grad():
        model.get_parameter("head.projection.bias")[objective.special_tokens.eos] = -1e9
    for words in (2, 100):
        source = encode_text(" ".join("abcdefgh"[i % 8] for i in range(words)), processor.source)
        batch = collate_examples(Examples({"source": RaggedArray.from_rows([source])}), np.array([0]))
        ((written,),) = objective.beam_decode(batch)
        short = 5 * times * 3 // 2 + 1
        assert len(written.tokens) == min(max_length, max(short, math.ceil(1.5 * times * len(source))))
