"""Recordings as a source: each is decoded once, whatever is made of it."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from foveal.config import DataConfig
from foveal.data.audio import audio_features
from foveal.data.audio.frame_places import FramePlaceBatches
from foveal.data.core.length_buckets import BucketedEvalBatches
from foveal.data.pairs.pair import PairFormat
from foveal.data.prepare_examples import prepare_examples
from tests.support.pair_formats import AUDIO_LABEL, AUDIO_LABELS, SPEECH

RATE, HOP, WINDOW = 8000, 80, 200
CONFIG = DataConfig(
    tokenizer="character", sample_rate=RATE, mel_bins=8, max_seconds=2, valid_fraction=0.2, test_fraction=0.2
)


def frame_count(samples: int) -> int:
    return 1 + (samples - WINDOW) // HOP


def write_recordings(folder: Path, count: int, fewer_labels: int = 0) -> str:
    """Write noises, each with a text, a label, and labels for its frames; `fewer_labels` of the first's."""
    folder.mkdir()
    chance, lines = np.random.default_rng(0), []
    for number in range(count):
        samples = chance.normal(0, 0.1, 800 + 80 * number)
        soundfile.write(folder / f"{number}.wav", samples, RATE)
        labels = ["low" if frame % 3 else "high" for frame in range(frame_count(len(samples)))]
        labels = labels[fewer_labels:] if number == 0 else labels
        fields = {"file_name": f"{number}.wav", "text": f"noise {number}", "label": "ab"[number % 2]}
        lines.append(json.dumps(fields | {"labels": labels}))
    (folder / "metadata.jsonl").write_text("\n".join(lines))
    return str(folder)


@pytest.mark.parametrize("data_format", [SPEECH, AUDIO_LABEL, AUDIO_LABELS])
def test_each_recording_is_decoded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data_format: PairFormat
) -> None:
    data = write_recordings(tmp_path / "noises", 20)
    decoded, decode = Counter[str](), audio_features._decode

    def counted(path: Path, max_seconds: float) -> Any:
        decoded[path.name] += 1
        return decode(path, max_seconds)

    monkeypatch.setattr(audio_features, "_decode", counted)
    prepare_examples(data_format, data, None, None, CONFIG, print)
    assert decoded == {f"{number}.wav": 1 for number in range(20)}


def test_each_frame_has_a_label(tmp_path: Path) -> None:
    data = write_recordings(tmp_path / "noises", 12)
    prepared = prepare_examples(AUDIO_LABELS, data, data, None, CONFIG, print)
    assert prepared.processor.target.labels == ("high", "low")
    batch = BucketedEvalBatches(prepared.train.examples, 10_000).batch(0, 0)
    lengths = {name: found.tolist() for name, found in batch.lengths.items()}
    assert lengths["source"] == lengths["places"] == lengths["target"]
    for row, length in zip(batch.rows.tolist(), lengths["source"], strict=True):
        assert prepared.train.references[row] == ["low" if frame % 3 else "high" for frame in range(length)]


def test_frames_share_the_vectors_of_an_encoder(tmp_path: Path) -> None:
    """Those of the last vector too, whatever the number of frames is."""
    data = write_recordings(tmp_path / "noises", 12)
    prepared = prepare_examples(AUDIO_LABELS, data, data, None, CONFIG, print)
    batches = FramePlaceBatches(BucketedEvalBatches(prepared.train.examples, 10_000), 4)
    batch = batches.batch(0, 0)
    for places, length in zip(batch.columns["places"], batch.lengths["source"].tolist(), strict=True):
        assert places[:length].tolist() == [frame // 4 for frame in range(length)]
        assert int(places.max()) < -(-length // 4)


def test_labels_that_are_not_one_for_each_frame_are_named(tmp_path: Path) -> None:
    data = write_recordings(tmp_path / "noises", 12, fewer_labels=2)
    prepared = prepare_examples(AUDIO_LABELS, data, data, None, CONFIG, print)
    frames = frame_count(800)
    why = f"{frames - 2} labels for {frames} frames; give each frame one label"
    assert {row.reason for row in prepared.skipped} == {why}
    assert len(prepared.train) == 11
