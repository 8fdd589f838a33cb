"""The example of an own cell trains, resumes, generates and is under the laws; the benchmark has another."""

import json
import os
import signal

import pytest

from benchmarks.kill import own_cache
from benchmarks.own_cell import measure_layer, measure_training
from examples.own_cell import MinimalGated, main
from foveal.core.signals import Interrupted
from foveal.training.trainer import Trainer
from tests.support.mixer_rows import ROWS

SETTINGS = ("model.width=48", "training.budget=60steps", "data.context_length=32", "data.batch_tokens=512")


@pytest.fixture
def text(tmp_path, monkeypatch):
    monkeypatch.setenv("FOVEAL_CACHE", str(own_cache(tmp_path / "cache")))
    path = tmp_path / "text.txt"
    path.write_text("The cat sat on the mat. The dog ate the hat.\n" * 300, encoding="utf-8")
    return path


def test_trains_resumes_and_generates(text, tmp_path, monkeypatch):
    whole = main(str(text), tmp_path / "whole", *SETTINGS)
    records = [json.loads(line) for line in (tmp_path / "whole/metrics.jsonl").read_text().splitlines()]
    losses = [record["loss"] for record in records if record["kind"] == "evaluation"]
    assert losses[-1] < 2.5 < losses[0]
    assert len(whole) == 200

    train = Trainer._train

    def stopped(self):
        train(self)
        if self.state.counters.step == 23:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_train", stopped)
        with pytest.raises(Interrupted):
            main(str(text), tmp_path / "parts", *SETTINGS)
    assert main(str(text), tmp_path / "parts", *SETTINGS) == whole
    weights = [(tmp_path / run / "model.safetensors").read_bytes() for run in ("whole", "parts")]
    assert weights[0] == weights[1]


def test_the_cell_is_among_the_laws():
    assert isinstance(ROWS["own-cell"].make().cell, MinimalGated)


@pytest.mark.parametrize("measure", [measure_layer, measure_training])
def test_the_benchmark_runs(measure):
    """The benchmark compares its cell with `torch.nn.LSTM` and with our LSTM, then times them."""
    assert measure(8, 2, 3, 0.4, quick=True).value > 0
