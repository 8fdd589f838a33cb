"""Glimpses: REINFORCE's gradient is that of the expected reward, and what it learns is where to look."""

import math

import pytest
import torch
from torch import Tensor

from foveal.config import ModelConfig, OptimizerConfig
from foveal.data.batching import ExampleBatch
from foveal.models.glimpse import Glimpses
from foveal.tasks.glimpse import GlimpseTask
from foveal.training.optim import Optimizer
from foveal.training.step import train_step
from tests.contract.test_glimpses import pictures

DEVIATION = 0.4


def model_of(width: int = 12, mixers: str = "lstm", **look: object) -> Glimpses:
    config = {"width": width, "layers": 1, "mixers": mixers, "residual": mixers == "attention"}
    sizes = {"side": 4, "deviation": DEVIATION} | look
    return Glimpses(ModelConfig.model_validate(config | {"glimpse": sizes}), 1, 2)


def batch_of(images: Tensor, labels: Tensor) -> ExampleBatch:
    rows = torch.arange(len(images))
    return ExampleBatch(rows, {"source": images, "label": labels}, {}, len(images))


def expected_reward(model: Glimpses, image: Tensor, label: int, steps: int = 200) -> Tensor:
    """`E[R]` of two glimpses, by the integral over all places of the second: a function of the policy."""
    edge = torch.linspace(-3, 3, steps)
    places = torch.cartesian_prod(edge, edge)
    with torch.no_grad():
        state = known_to_the_policy(model.eval(), image)
        policy, model.policy = model.policy, Places(places)  # type: ignore[assignment]
        answers = model(image.expand(len(places), -1, -1, -1)).answers[:, -1]
        reward, model.policy = (answers.argmax(1) == label).float(), policy
    mean = policy(state).tanh()
    density = (-(places - mean).square().sum(1) / (2 * DEVIATION**2)).exp() / (2 * math.pi * DEVIATION**2)
    return (density * reward).sum() * (edge[1] - edge[0]) ** 2


class Places(torch.nn.Module):
    """A policy that goes to given places, one a row."""

    def __init__(self, places: Tensor):
        super().__init__()
        self.places = places.clamp(-1 + 1e-7, 1 - 1e-7)

    def forward(self, _: Tensor) -> Tensor:
        return self.places.atanh()


def known_to_the_policy(model: Glimpses, image: Tensor) -> Tensor:
    """After the first glimpse (1, D)."""
    seen: list[Tensor] = []
    hook = model.policy.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    model(image)
    hook.remove()
    return seen[0]


def test_reinforce_has_the_gradient_of_the_expected_reward() -> None:
    """On average, with a baseline or without: of a hundred thousand paths of one image."""
    torch.manual_seed(7)
    model = model_of(count=2)
    torch.nn.init.constant_(model.baseline.bias, 0.3)
    torch.nn.init.normal_(model.policy.bias, std=0.3)
    image = 3 * torch.randn(1, 1, 8, 8)
    with torch.no_grad():  # so that half of all paths end well
        answers = model(image.expand(1000, -1, -1, -1)).answers[:, -1]
        model.projection.bias[0] -= (answers[:, 0] - answers[:, 1]).median()
    reward = expected_reward(model, image, 1)
    assert 0.2 < reward < 0.8, "an image that tells nothing"
    exact = torch.autograd.grad(reward, list(model.policy.parameters()))
    model.train()
    found, task = [], GlimpseTask(model, ("a", "b"), 1.0)
    for _ in range(20):
        result, _ = task(batch_of(image.expand(5000, -1, -1, -1), torch.ones(5000).long()), None)
        term = result.terms["path"]
        found.append(torch.autograd.grad(-term.sum / term.weight, list(model.policy.parameters())))
    for part, right in zip(map(torch.stack, zip(*found, strict=True)), exact, strict=True):
        error = part.std(0) / math.sqrt(len(found))
        assert ((part.mean(0) - right).abs() < 5 * error + 1e-3 * right.abs().max()).all()
        assert right.abs().max() > 20 * error.max(), "nothing is shown by so few paths"


def test_where_to_look_is_learnt_by_reinforce_alone() -> None:
    """Its gradient stays out of what sees, and the label's out of the policy."""
    model = model_of(count=3)
    result, _ = GlimpseTask(model, ("a", "b"), 0.01)(
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
    assert path.places.shape == (3, 6, 2)
    assert path.answers.shape == (3, 6, 2)


def test_evaluation_draws_nothing_and_one_glimpse_is_enough() -> None:
    model = model_of().eval()
    images = torch.randn(3, 1, 8, 8)
    assert torch.equal(model(images).places, model(images).places)
    single = model_of(count=1)
    result, _ = GlimpseTask(single, ("a", "b"), 1.0)(batch_of(images, torch.zeros(3).long()), None)
    assert [float(result.terms[name].sum) for name in ("path", "baseline")] == [0, 0]


def test_it_learns_where_to_look() -> None:
    """Of four quarters the brightest tells the class; all are seen coarsely at once, none sharply."""
    torch.manual_seed(3)
    model = model_of(32, count=3, scales=2, deviation=0.2)
    task, optimizer = GlimpseTask(model, ("a", "b"), 0.05), Optimizer(model, OptimizerConfig(name="adam"))
    for step in range(250):
        torch.manual_seed(step)
        made = pictures(48, first=True)
        done, _ = train_step(
            model,
            task,
            optimizer,
            [batch_of(made.pictures[:, None], made.labels)],
            [None],
            rate=6e-3,
            seed=(0, step),
        )
        assert done.culprit is None
    made = pictures(500, first=True)
    probabilities = (model.eval(), task.predict(batch_of(made.pictures[:, None], made.labels)))[1]
    assert probabilities.argmax(1).eq(made.labels).float().mean() > 0.9


def test_a_broken_image_is_refused_and_changes_nothing() -> None:
    model = model_of()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    images = torch.randn(4, 1, 8, 8)
    images[2] = torch.nan
    task, optimizer = GlimpseTask(model, ("a", "b"), 0.01), Optimizer(model, OptimizerConfig())
    batch = batch_of(images, torch.arange(4) % 2)
    done, _ = train_step(model, task, optimizer, [batch], [None], rate=1e-2, seed=(0, 0))
    assert done.culprit is not None
    assert all(map(torch.equal, before, model.parameters()))
