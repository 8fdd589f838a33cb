"""The lectures' own cases: repeated 1s found by hand-set weights, "hello", and min-char-rnn."""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from foveal.core.signals import SignalHandler
from foveal.data.core.batching import TokenBatch
from foveal.data.text.tokenizers import CharacterTokenizer
from foveal.generation.sampling import Sampling
from foveal.generation.text_stream import collect_texts, generate_text
from foveal.layers.mixers.recurrent import Recurrent
from foveal.layers.mixers.recurrent_cells import ElmanCell
from foveal.store.run import create_run
from foveal.tasks.config import from_tables, load_config
from foveal.tasks.read_settings import config_to_toml
from foveal.tasks.registry import task_of
from foveal.tasks.session import build_model
from foveal.training.optim import Optimizer
from foveal.training.step import train_step
from foveal.training.trainer import Trainer
from tests.support.min_char_rnn import min_char_rnn, min_char_weights


@pytest.mark.parametrize("stepwise", [True, False])
def test_repeated_ones(stepwise):
    """The hand-built ReLU network: h holds the current input, the one before, and a constant 1.

    `y = max(current + previous - 1, 0)`. An input is a vector of one number, of shape (1, 1) with its
    batch: a bare number has no product with `W_xh`.
    """
    cell = ElmanCell(1, 3, "relu")
    with torch.no_grad():
        cell.weight_input.copy_(torch.tensor([[1.0], [0.0], [0.0]]))
        cell.weight_hidden.copy_(torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 0, 1]]))
    W_yh = torch.tensor([1.0, 1.0, -1.0])
    mixer = Recurrent(cell)
    for string in itertools.product((0.0, 1.0), repeat=8):
        x = torch.tensor(string).view(1, 8, 1)
        state = {"h": torch.tensor([[0.0, 0.0, 1.0]])}
        outputs = []
        for part in x.unbind(1) if stepwise else (x,):
            h, state = mixer(part.reshape(1, -1, 1), state)
            outputs.append((h @ W_yh).relu())
        expected = [max(now + before - 1, 0) for now, before in zip(string, (0.0, *string), strict=False)]
        assert torch.cat(outputs, 1)[0].tolist() == expected


def test_hello():
    """Four letters one-hot, three hidden units: `hell` is answered by `ello`, and `h` alone begins it."""
    tokenizer = CharacterTokenizer("hello")
    assert tokenizer.vocabulary == "ehlo"
    config = from_tables(
        {
            "data": {"context_length": 4, "batch_tokens": 4},
            "model": {"mixers": "rnn", "layers": 1, "width": 3, "embedding_width": -1},
            "optimizer": {"name": "adam"},
            "training": {"seed": 3},
        }
    )
    task = task_of(config).bind(tokenizer)
    model: Any = build_model(task, torch.device("cpu"))
    objective, optimizer = task.bind(tokenizer, model).objective(), Optimizer(model, config.optimizer)
    ids = torch.from_numpy(tokenizer.encode("hello"))[None]
    batch = TokenBatch(ids[:, :-1], ids[:, 1:])
    losses = []
    for step in range(300):
        done, _ = train_step(model, objective, optimizer, [batch], [None], lr=0.05, seed=(0, step))
        losses.append(done.loss)
    assert losses[0] > 1.2
    assert losses[-1] < 0.02
    model.eval()
    written = collect_texts(generate_text(model, tokenizer, ["h"], 4, Sampling(temperature=0.0)))
    assert written[0].text == "ello"


@pytest.mark.slow
def test_min_char_rnn(tmp_path):
    """A hundred steps of the preset, by the trainer, in float64: the losses of an independent run.

    At this rate the algorithm is chaotic on many texts: a change of 1e-15 in the weights changes later
    losses by whole nats, in NumPy too. So first, that this text and these weights are not such a case.
    """
    text = (Path(__file__).parents[1] / "LICENSE").read_text(encoding="utf-8")[:2600]
    tokenizer = CharacterTokenizer(text)
    assert tokenizer.vocabulary == "".join(sorted(set(text))), "a set's order changes with the process"
    config = load_config("min-char-rnn", ["training.budget=100steps"])
    task = task_of(config).bind(tokenizer)
    model: Any = build_model(task, torch.device("cpu")).double()
    task = task.bind(tokenizer, model)
    data = tokenizer.encode(text)
    weights = min_char_weights(model)
    expected = min_char_rnn(data.tolist(), weights, 100)
    nudged = min_char_rnn(data.tolist(), [weight + 1e-15 for weight in weights], 100)
    np.testing.assert_allclose(nudged, expected, rtol=0, atol=1e-9)

    folder = create_run(tmp_path / "run", config, config_to_toml(config), {}, {})

    Trainer(folder, model, task.objective(), task.train_batches(data), None).run(SignalHandler())
    lines = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    steps = [line for line in lines if line["kind"] == "step"]
    losses = [line["objective"] for line in steps]
    np.testing.assert_allclose(losses, expected, rtol=0, atol=1e-8)
    assert losses[0] == pytest.approx(25 * np.log(tokenizer.size), rel=0.05), "summed, not averaged"
    assert max(line["gradient_largest"] for line in steps) > 5, "the clip was used"
