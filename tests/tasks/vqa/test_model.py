"""A model of images and questions against its equations, written out row by row."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from foveal.data.core.batching import ExampleBatch
from foveal.data.pairs.labels import LabelProcessor
from foveal.data.pairs.nothing import NoTargetProcessor
from foveal.data.pairs.pair import PairProcessor
from foveal.tasks.vqa.model import MultipleChoiceModel, VQAModel
from foveal.tasks.vqa.task import VQAMultipleChoiceTask, VQATask
from tests.support.vqa_model import (
    CHOICES,
    COUNTS,
    IMAGE_AND_TEXT,
    LENGTHS,
    randomized,
    vqa_batch,
    vqa_config,
)


def elman(part: Any, tokens: Tensor) -> Tensor:
    """h_1 .. h_T (T, D), `h_t = tanh(W x_t + U h_(t-1) + b)`."""
    cell, h, states = part.stack.blocks[0].mixer.cell, torch.zeros(4, dtype=torch.float64), []
    for x in part.embedding.table[tokens]:
        h = torch.tanh(cell.weight_input @ x + cell.weight_hidden @ h + cell.bias)
        states.append(h)
    return torch.stack(states)


def memory_of(encoder: Any, given: ExampleBatch, row: int) -> Tensor:
    """What is present in a row's joint memory (S, D)."""
    pixels = given.columns["source"][given.columns["source_of"][row]].flatten(1).T
    found = {"source": pixels}
    for name in ("history", "question"):
        found[name] = elman(encoder.parts[name], given.columns[name][row, : LENGTHS[name][row]])
    maps = encoder.maps
    x = torch.cat([vectors @ maps[name].weight.T + maps[name].bias for name, vectors in found.items()])
    reader = encoder.stack.blocks[0].mixer
    q, k, v = (x @ part.weight.T + part.bias for part in (reader.query, reader.key, reader.value))
    weights = (q @ k.T / math.sqrt(4)).softmax(1)
    return weights @ v @ reader.output.weight.T + reader.output.bias


def projected(model: Any, given: ExampleBatch) -> Tensor:
    means = torch.stack([memory_of(model.encoder, given, row).mean(0) for row in range(3)])
    return means @ model.head.projection.weight.T + model.head.projection.bias


@pytest.fixture
def given() -> ExampleBatch:
    return vqa_batch()


def test_answers_are_those_of_the_equations(given: ExampleBatch) -> None:
    processor = PairProcessor(IMAGE_AND_TEXT, LabelProcessor(("x", "y", "z")))
    task = VQATask(vqa_config("vqa"), processor)
    model = randomized(task.new_model())
    assert isinstance(model, VQAModel)
    found = task.bind(processor, model).objective().predict_batch(given)
    torch.testing.assert_close(found, projected(model, given).softmax(1), rtol=1e-9, atol=1e-9)


def test_choices_are_scored_as_the_equations_say(given: ExampleBatch) -> None:
    processor = PairProcessor(IMAGE_AND_TEXT, NoTargetProcessor())
    task = VQAMultipleChoiceTask(vqa_config("vqa-multiple-choice"), processor)
    model = randomized(task.new_model())
    assert isinstance(model, MultipleChoiceModel)
    objective, wanted = task.bind(processor, model).objective(), projected(model, given)
    held = given.lengths["choice"].tolist()
    vectors = [elman(model.choices, given.columns["choice"][c, : held[c]])[-1] for c in range(5)]
    found, nats = objective.predict_batch(given), 0.0
    for row, count in enumerate(COUNTS):
        scores = torch.stack([wanted[row] @ vectors[c] / math.sqrt(4) for c in CHOICES[row][:count]])
        torch.testing.assert_close(found[row, :count], scores.softmax(0), rtol=1e-9, atol=1e-9)
        assert found[row, count:].eq(0).all()
        nats -= float(scores.detach().log_softmax(0)[given.columns["label"][row]])
    result, _ = objective(given, None)
    assert result.metrics["loss"][0] == pytest.approx(nats)
    result.terms["loss"].sum.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.ne(0).any() or name.endswith("key.bias"), name  # all keys moved alike
