"""A model that is no encoder and head: it looks where it chooses to, and learns by REINFORCE.

The trainer is the same; the loss, the sampling and the reward's baseline are the task's affair.
"""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.config import OptimizerConfig
from foveal.core.result import ObjectiveOutput, Term
from foveal.core.state import pack, unpack
from foveal.layers.mixers.recurrent import Recurrent
from foveal.layers.mixers.recurrent_cells import ElmanCell
from foveal.training.optim import Optimizer
from foveal.training.step import train_step
from tests.support.striped_images import CLASSES, PATCH, PLACES, StripedImages, striped_images


class Glimpses(nn.Module):
    """Recurrent attention over places of a picture (Mnih et al. 2014): an overview, then `looks` patches."""

    def __init__(self, width: int = 24, looks: int = 2):
        super().__init__()
        self.looks = looks
        self.see = nn.Linear(4 + PATCH * PATCH + PLACES, width)
        self.mixer = Recurrent(ElmanCell(width, width, "relu"))
        self.where = nn.Linear(width, PLACES)
        self.what = nn.Linear(width, CLASSES)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (B, C) and the log-probability of the path of places that was looked at (B,)."""
        overview = F.avg_pool2d(x[:, None], PATCH).flatten(1)
        patches = x.unfold(1, PATCH, PATCH).unfold(2, PATCH, PATCH).flatten(1, 2).flatten(2)
        seen = F.pad(overview, (0, PATCH * PATCH + PLACES))
        state, path = None, x.new_zeros(len(x))
        for look in range(1 + self.looks):
            h, state = self.mixer(self.see(seen).relu()[:, None], state)
            if look == self.looks:
                return self.what(h[:, 0]), path
            policy = self.where(h[:, 0]).log_softmax(1)
            # The largest of logits and Gumbel noise is a sample; unlike torch.multinomial it stands NaN, so
            # that the trainer, not the model, decides what becomes of a bad step.
            noise = -torch.empty_like(policy).exponential_().log() if self.training else 0.0
            place = (policy + noise).argmax(1)
            path = path + policy.gather(1, place[:, None]).squeeze(1)
            patch = patches[torch.arange(len(x)), place]
            seen = torch.cat([torch.zeros_like(overview), patch, F.one_hot(place, PLACES)], 1)
        raise AssertionError


class GlimpseTask:
    """Cross-entropy of the label, and `-(R - b) log p(path)`: R is 1 for a right answer (Williams 1992).

    The baseline b is the mean reward so far, learned in the carry: one number a row, since the trainer
    keeps, resets and fixes carries by rows; the mean over rows is what is used.
    """

    def __init__(self, model: Glimpses):
        self.model = model

    def weights(self, batch: StripedImages) -> dict[str, float]:
        return {"label": float(batch.tokens), "path": float(batch.tokens)}

    def start(self, batch: StripedImages) -> dict[str, Tensor]:
        return {"reward": torch.full((batch.tokens,), 1 / CLASSES)}

    def __call__(
        self, batch: StripedImages, carry: dict[str, Tensor]
    ) -> tuple[ObjectiveOutput, dict[str, Tensor]]:
        logits, path = self.model(batch.pictures)
        reward = (logits.detach().argmax(1) == batch.labels).float()
        advantage = reward - carry["reward"].mean()
        weights = self.weights(batch)
        terms = {
            "label": Term(F.cross_entropy(logits, batch.labels, reduction="sum"), weights["label"]),
            "path": Term(-(advantage * path).sum(), weights["path"]),
        }
        # A row whose picture is broken has no reward worth keeping.
        learned = torch.where(path.isfinite(), carry["reward"].lerp(reward, 0.1), torch.nan)
        return ObjectiveOutput(terms, {"accuracy": (float(reward.sum()), float(batch.tokens))}), {
            "reward": learned
        }

    def preview(self, step: int) -> None:
        return None


def accuracy(model: Glimpses) -> float:
    torch.manual_seed(99)
    batch = striped_images(400, False)
    model.eval()
    with torch.no_grad():
        return float((model(batch.pictures)[0].argmax(1) == batch.labels).float().mean())


@pytest.mark.slow
def test_it_learns_where_to_look():
    """Two looks anywhere find the bright place in 7 of 16 pictures; taught by the trainer's step, in all."""
    torch.manual_seed(3)
    model = Glimpses(looks=2)
    task, optimizer = GlimpseTask(model), Optimizer(model, OptimizerConfig(name="adam"))
    carries: list[Any] = [None]
    for step in range(250):
        torch.manual_seed(step)
        batch = striped_images(48, step == 0)
        done, carries = train_step(model, task, optimizer, [batch], carries, lr=5e-3, seed=(0, step))
        assert done.first_nonfinite is None
    assert accuracy(model) > 0.95
    assert carries[0]["reward"].mean() > 0.8, "the baseline has followed the reward"
    assert not carries[0]["reward"].requires_grad


def test_a_step_is_repeatable():
    """What is sampled inside the model is a function of (seed, step, slot)."""
    found: list[Any] = []
    for _ in range(2):
        torch.manual_seed(1)
        model = Glimpses()
        task, optimizer = GlimpseTask(model), Optimizer(model, OptimizerConfig())
        torch.manual_seed(2)
        batch = striped_images(8, True)
        torch.rand(len(found))
        train_step(model, task, optimizer, [batch, batch], [None, None], lr=1e-2, seed=(0, 7))
        found.append([parameter.detach().clone() for parameter in model.parameters()])
    assert all(map(torch.equal, *found))


def test_a_broken_picture_is_refused_and_its_row_begins_again():
    model = Glimpses()
    task, optimizer = GlimpseTask(model), Optimizer(model, OptimizerConfig())
    before = [parameter.detach().clone() for parameter in model.parameters()]
    batch = striped_images(4, False)
    batch.pictures[2] = torch.nan
    carry = {"reward": torch.full((4,), 0.9)}
    done, (after,) = train_step(model, task, optimizer, [batch], [carry], lr=1e-2, seed=(0, 0))
    assert done.first_nonfinite is not None
    assert all(map(torch.equal, before, model.parameters()))
    assert after["reward"][2] == 1 / CLASSES
    assert after["reward"][[0, 1, 3]].ne(1 / CLASSES).all()


def test_its_carry_can_be_stored():
    carry = {"reward": torch.rand(4)}
    tensors, skeleton = pack(carry)
    assert torch.equal(unpack(tensors, skeleton)["reward"], carry["reward"])
