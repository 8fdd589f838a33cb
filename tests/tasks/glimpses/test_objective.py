"""Glimpses: REINFORCE's gradient is that of the expected reward, and what it learns is where to look."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from foveal.config import ModelConfig, OptimizerConfig
from foveal.data.core.batching import ExampleBatch
from foveal.tasks.glimpses.glimpse_sensor import glimpse_sensor
from foveal.tasks.glimpses.model import RecurrentAttentionModel
from foveal.tasks.glimpses.objective import GlimpsesObjective
from foveal.training.optim import Optimizer
from foveal.training.step import train_step
from tests.support.striped_images import striped_images

DEVIATION = 0.4
EDGE = torch.linspace(-3, 3, 200)
GRID, SPACE = torch.cartesian_prod(EDGE, EDGE), float(EDGE[1] - EDGE[0])


def model_of(
    width: int = 12,
    mixers: str = "lstm",
    count: int = 6,
    side: int = 4,
    scales: int = 1,
    std: float = DEVIATION,
) -> RecurrentAttentionModel:
    config = {"width": width, "layers": 1, "mixers": mixers, "residual": mixers == "attention"}
    sizes = ModelConfig.model_validate(config)
    return RecurrentAttentionModel(sizes, 1, 2, count=count, side=side, scales=scales, std=std)


def batch_of(images: Tensor, labels: Tensor) -> ExampleBatch:
    rows = torch.arange(len(images))
    return ExampleBatch(
        rows, {"source": images, "label": labels}, {}, torch.ones(len(images), dtype=torch.int64)
    )


def expected_reward(
    model: RecurrentAttentionModel, image: Tensor, label: int, locations: Tensor, axes: slice
) -> Tensor:
    """`E[R]` of a path behind the first glimpse, by the integral over all `locations` (N, U, 2), of which two
    numbers differ, those of `axes`: a function of the policy."""
    with torch.no_grad():
        policy, model.policy = model.policy, Places(locations)  # type: ignore[assignment]
        answers = model.eval()(image.expand(len(locations), -1, -1, -1)).logits[:, -1]
        known: Any
        reward, known, model.policy = (answers.argmax(1) == label).float(), model.policy.known, policy
    density = torch.ones(())
    for state, place in zip(known, locations.unbind(1), strict=True):
        far = (place - policy(state).tanh())[:, axes].square().sum(1)
        density = density * (-far / (2 * DEVIATION**2)).exp()
    return (density * reward).sum() * SPACE**2 / (2 * math.pi * DEVIATION**2)


class Places(torch.nn.Module):
    """A policy that goes to given places, one a row at each step, and remembers what it knew there."""

    def __init__(self, locations: Tensor):
        super().__init__()
        self.locations, self.known = locations.clamp(-1 + 1e-7, 1 - 1e-7), list[Tensor]()

    def forward(self, known: Tensor) -> Tensor:
        self.known.append(known)
        return self.locations[:, len(self.known) - 1].atanh()


def test_reinforce_has_the_gradient_of_the_expected_reward() -> None:
    """On average, with a baseline or without: of a hundred thousand paths of one image."""
    torch.manual_seed(7)
    model = model_of(count=2)
    torch.nn.init.constant_(model.baseline.bias, 0.3)
    check_reinforce(model, 3 * torch.randn(1, 1, 8, 8), torch.ones(1).long(), GRID[:, None], slice(2))


def test_so_it_has_over_several_places_and_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is above or below is not seen, so that two places in a row are two numbers to integrate over.
    What was to be expected differs from step to step."""
    across = torch.tensor([0.0, 1.0])
    monkeypatch.setattr(
        "foveal.tasks.glimpses.model.glimpse_sensor",
        lambda images, place, *size: glimpse_sensor(images, place * across, *size),
    )
    torch.manual_seed(1)
    model = model_of(count=3)
    torch.nn.init.zeros_(model.glimpse.place.weight[:, 0])
    torch.nn.init.normal_(model.baseline.weight, std=2.0)
    places = torch.stack([torch.zeros_like(GRID), GRID], 2)
    check_reinforce(model, 3 * torch.randn(2, 1, 8, 8), torch.tensor([1, 0]), places, slice(1, 2))


def check_reinforce(
    model: RecurrentAttentionModel,
    images: Tensor,
    labels: Tensor,
    locations: Tensor,
    axes: slice,
    times: int = 5000,
) -> None:
    torch.nn.init.normal_(model.policy.bias, std=0.3)
    with torch.no_grad():  # so that half of all paths end well
        answers = model(images.repeat(1000, 1, 1, 1)).logits[:, -1]
        model.projection.bias[0] -= (answers[:, 0] - answers[:, 1]).median()
    rewards = [
        expected_reward(model, image[None], label, locations, axes)
        for image, label in zip(images, labels.tolist(), strict=True)
    ]
    assert all(0.1 < reward < 0.9 for reward in rewards), "an image that tells nothing"
    exact = torch.autograd.grad(torch.stack(rewards).mean(), list(model.policy.parameters()))
    model.train()
    found, objective, each = [], GlimpsesObjective(model, ("a", "b"), 1.0), times // len(images)
    batch = batch_of(images.repeat(each, 1, 1, 1), labels.repeat(each))
    for _ in range(20):
        term = objective(batch, None)[0].terms["path"]
        found.append(torch.autograd.grad(-term.sum / term.weight, list(model.policy.parameters())))
    for part, right in zip(map(torch.stack, zip(*found, strict=True)), exact, strict=True):
        error = part.std(0) / math.sqrt(len(found))
        assert ((part.mean(0) - right).abs() < 5 * error + 1e-3 * right.abs().max()).all()
        assert right.abs().max() > 20 * error.max(), "nothing is shown by so few paths"


def test_where_to_look_is_learnt_by_reinforce_alone() -> None:
    """Its gradient stays out of what sees, and the label's out of the policy."""
    model = model_of(count=3)
    result, _ = GlimpsesObjective(model, ("a", "b"), 0.01)(
        batch_of(torch.randn(6, 1, 8, 8), torch.arange(6) % 2), None
    )
    reached = {
        name: {
            parameter.split(".")[0]
            for (parameter, _), gradient in zip(
                model.named_parameters(),
                torch.autograd.grad(term.sum, list(model.parameters()), retain_graph=True, allow_unused=True),
                strict=True,
            )
            if gradient is not None and gradient.any()
        }
        for name, term in result.terms.items()
    }
    assert reached["path"] == {"policy"}
    assert reached["baseline"] == {"baseline"}
    assert reached["loss"] == {"glimpse", "core", "projection"}


@pytest.mark.parametrize("mixers", ["rnn", "gru", "attention"])
def test_any_mixer_may_be_its_core(mixers: str) -> None:
    path = model_of(16, mixers)(torch.randn(3, 1, 8, 8))
    assert path.locations.shape == (3, 6, 2)
    assert path.logits.shape == (3, 6, 2)


def test_evaluation_draws_nothing_and_one_glimpse_is_enough() -> None:
    model = model_of().eval()
    images = torch.randn(3, 1, 8, 8)
    assert torch.equal(model(images).locations, model(images).locations)
    single = model_of(count=1)
    result, _ = GlimpsesObjective(single, ("a", "b"), 1.0)(batch_of(images, torch.zeros(3).long()), None)
    assert [float(result.terms[name].sum) for name in ("path", "baseline")] == [0, 0]


@pytest.mark.slow
def test_it_learns_where_to_look() -> None:
    """The brightest of four quarters determines the class. The first glimpse shows all quarters, but only
    coarsely."""
    torch.manual_seed(3)
    model = model_of(32, count=3, scales=2, std=0.2)
    objective, optimizer = (
        GlimpsesObjective(model, ("a", "b"), 0.05),
        Optimizer(model, OptimizerConfig(name="adam")),
    )
    for step in range(250):
        torch.manual_seed(step)
        made = striped_images(48, first=True)
        done, _ = train_step(
            model,
            objective,
            optimizer,
            [batch_of(made.pictures[:, None], made.labels)],
            [None],
            lr=6e-3,
            seed=(0, step),
        )
        assert done.first_nonfinite is None
    made = striped_images(500, first=True)
    probabilities = (model.eval(), objective.predict_batch(batch_of(made.pictures[:, None], made.labels)))[1]
    assert probabilities.argmax(1).eq(made.labels).float().mean() > 0.9


def test_a_broken_image_is_refused_and_changes_nothing() -> None:
    model = model_of()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    images = torch.randn(4, 1, 8, 8)
    images[2] = torch.nan
    objective, optimizer = GlimpsesObjective(model, ("a", "b"), 0.01), Optimizer(model, OptimizerConfig())
    batch = batch_of(images, torch.arange(4) % 2)
    done, _ = train_step(model, objective, optimizer, [batch], [None], lr=1e-2, seed=(0, 0))
    assert done.first_nonfinite is not None
    assert all(map(torch.equal, before, model.parameters()))
