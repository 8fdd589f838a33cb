"""Networks with batch norm in training and evaluation: statistics of micro-batches, running ones, refusals;
and what holds of images as of other tasks: smoothing, weight decay, averages."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.config import OptimizerConfig
from foveal.data.core.batching import ExampleBatch
from foveal.layers.vision.residual import basic_block
from foveal.models.encoder import EncoderWithHead
from foveal.models.resnet import ResNet
from foveal.objectives.classification import ClassificationObjective
from foveal.training.averaging import ExponentialMovingAverage
from foveal.training.evaluate import evaluate
from foveal.training.optim import Optimizer
from foveal.training.step import train_step
from tests.support.gradients import gradient_of

SIDE, CLASSES = 8, ("a", "b", "c")
SGD = OptimizerConfig(name="sgd", clip_norm=0.0)


def network() -> EncoderWithHead:
    torch.manual_seed(0)
    recipe = ResNet(basic_block, (1, 1), (4, 8), "projection", first=4, pooled=False)
    encoder = recipe.make_encoder(3, True)
    return EncoderWithHead(
        encoder, recipe.make_head(encoder.width, encoder.grid(SIDE), len(CLASSES), 0.0)
    ).double()


def batch(count: int, seed: int, scale: float = 1.0) -> ExampleBatch:
    draw = torch.Generator().manual_seed(seed)
    images = scale * torch.randn(count, 3, SIDE, SIDE, generator=draw, dtype=torch.float64) + seed
    labels = torch.randint(len(CLASSES), (count,), generator=draw)
    return ExampleBatch(
        torch.arange(count), {"source": images, "label": labels}, {}, torch.ones(count, dtype=torch.int64)
    )


def logits(model: EncoderWithHead, images: Tensor) -> Tensor:
    return model.head.project(model.head(model.encoder(images)[0])[0])


def step(
    model: EncoderWithHead, *batches: ExampleBatch, label_smoothing: float = 0.0, lr: float = 0.1
) -> str | None:
    task = ClassificationObjective(model, CLASSES, label_smoothing)
    done, _ = train_step(model, task, Optimizer(model, SGD), batches, [None] * len(batches), lr=lr, seed=(0,))
    return done.first_nonfinite


def first_norm(model: EncoderWithHead) -> Any:
    return model.encoder.blocks[0].norm


class Once:
    """All of one batch, split."""

    def __init__(self, whole: ExampleBatch, size: int):
        self.parts = [
            ExampleBatch(
                rows,
                {name: column[rows] for name, column in whole.columns.items()},
                {},
                torch.ones_like(rows),
            )
            for rows in torch.arange(len(whole.rows)).split(size)
        ]
        self.per_epoch = len(self.parts)

    def batch(self, epoch: int, index: int) -> ExampleBatch:
        return self.parts[index]


def test_micro_batches_have_statistics_of_their_own():
    """The gradient is that of the sum of losses, each normed by its own batch; running statistics move with
    each, in their order."""
    model, plain = network(), network().train()
    parts = [batch(6, 1), batch(4, 2, scale=3.0)]
    step(model, *parts, lr=0.5)
    losses = [
        F.cross_entropy(logits(plain, p.columns["source"]), p.columns["label"], reduction="sum")
        for p in parts
    ]
    (torch.stack(losses).sum() / 10).backward()
    for own, other in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(own, other - 0.5 * gradient_of(other), rtol=0, atol=1e-10)
    mean, variance = torch.zeros(4).double(), torch.ones(4).double()
    maps = [network().encoder.blocks[0].convolution(part.columns["source"]).detach() for part in parts]
    for x in maps:
        mean += 0.1 * (x.mean((0, 2, 3)) - mean)
        variance += 0.1 * (x.var((0, 2, 3)) - variance)
    torch.testing.assert_close(first_norm(model).running_mean, mean)
    torch.testing.assert_close(first_norm(model).running_var, variance)
    assert first_norm(model).num_batches_tracked == 2
    together = network()
    step(
        together,
        ExampleBatch(torch.arange(10), _joined(parts), {}, torch.ones(10, dtype=torch.int64)),
        lr=0.5,
    )
    assert not torch.allclose(first_norm(together).running_mean, mean), "not one big batch"


def _joined(parts: list[ExampleBatch]) -> dict[str, Tensor]:
    return {name: torch.cat([part.columns[name] for part in parts]) for name in ("source", "label")}


def test_evaluation_is_by_the_running_statistics():
    """Whatever stands beside an image, and without a trace."""
    model, held_out = network(), batch(10, 3)
    for index in range(5):
        step(model, batch(16, index))
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    task = ClassificationObjective(model, CLASSES)
    whole, alone = (evaluate(model, task, Once(held_out, size)) for size in (10, 1))
    assert whole == pytest.approx(alone, abs=1e-10)
    assert all(torch.equal(buffer, before[name]) for name, buffer in model.named_buffers())
    norm, convolution = first_norm(model), model.encoder.blocks[0].convolution
    x = convolution(held_out.columns["source"])
    mean, variance = (each[:, None, None] for each in (norm.running_mean, norm.running_var))
    normed = (x - mean) / (variance + 1e-5).sqrt()
    expected = F.relu(norm.weight[:, None, None] * normed + norm.bias[:, None, None])
    torch.testing.assert_close(model.encoder.blocks[0](held_out.columns["source"]), expected)


def test_a_refused_step_leaves_them_bit_for_bit():
    model = network()
    step(model, batch(8, 1))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    bad = batch(8, 2)
    bad.columns["source"][3, 1, 2, 2] = math.nan
    assert step(model, batch(8, 3), bad) is not None
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert step(model, batch(8, 3), batch(8, 2)) is None
    assert not torch.equal(first_norm(model).running_mean, before["encoder.blocks.0.norm.running_mean"])


def test_smoothing_trains_towards_all_classes_and_is_not_reported():
    model, plain, part = network(), network().train(), batch(6, 1)
    chances = logits(plain, part.columns["source"]).log_softmax(1)
    wanted = torch.full((6, 3), 0.3 / 3).double()
    wanted[torch.arange(6), part.columns["label"]] += 0.7
    (-(wanted * chances).sum() / 6).backward()
    step(model, part, label_smoothing=0.3, lr=0.5)
    for own, other in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(own, other - 0.5 * gradient_of(other), rtol=0, atol=1e-10)
    smoothed, bare = (
        evaluate(model, ClassificationObjective(model, CLASSES, share), Once(part, 6)) for share in (0.3, 0.0)
    )
    assert smoothed == bare


def test_weight_decay_is_of_kernels_and_matrices():
    """With gradients of zero, what shrinks is what decays: no gains, shifts and biases."""
    model = network()
    for weight in model.parameters():
        nn.init.ones_(weight)
        weight.grad = torch.zeros_like(weight)
    Optimizer(model, OptimizerConfig(name="adamw", weight_decay=0.5)).step(0.1, 0.0)
    shrunk = {name for name, weight in model.named_parameters() if weight.lt(0.99).all()}
    assert shrunk == {name for name, weight in model.named_parameters() if weight.dim() > 1}
    assert {name.split(".")[-2] for name in shrunk} == {"convolution", "projection"}


def test_the_average_is_of_running_statistics_too():
    model = network()
    average = ExponentialMovingAverage(model, 0.5)
    expected = first_norm(model).running_var.clone()
    for index in range(3):
        step(model, batch(8, index))
        average.update(index)
        expected += (1 - min(0.5, (1 + index) / (10 + index))) * (first_norm(model).running_var - expected)
    own = first_norm(model).running_var.clone()
    with average.applied():
        torch.testing.assert_close(first_norm(model).running_var, expected)
    assert torch.equal(first_norm(model).running_var, own)
