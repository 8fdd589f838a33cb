"""train_step: micro-batches equal the big batch, the trainer equals a plain loop, bad numbers are refused."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from foveal.config import OptimizerConfig
from foveal.core.result import ObjectiveOutput, Term
from foveal.core.runtime import seed_everything
from foveal.core.signals import SignalHandler
from foveal.training.carry import detach_carry, starting_carry
from foveal.training.optim import Optimizer
from foveal.training.step import train_step
from tests.support.gradients import gradient_of
from tests.support.saved_files import values
from tests.support.toy_training import (
    D,
    ToyBatch,
    ToyBatches,
    ToyModel,
    ToyObjective,
    V,
    toy_config,
    toy_trainer,
)

SGD = OptimizerConfig(name="sgd", clip_norm=0.0)


def together(parts: list[ToyBatch]) -> ToyBatch:
    starts = None if parts[0].stream_starts is None else torch.cat([part.stream_starts for part in parts])  # type: ignore[misc]
    return ToyBatch(torch.cat([p.inputs for p in parts]), torch.cat([p.targets for p in parts]), starts)


@pytest.mark.parametrize("slots", [2, 3])
def test_micro_batches_equal_one_big_batch(slots: int) -> None:
    """Five steps with carried state and terms of different weights, to 1e-10 in float64."""
    stream = ToyBatches(slots=slots, length=3)
    nets = [ToyModel(dropout=0.0, norm=False, dtype=torch.float64) for _ in range(2)]
    tasks, optimizers = [ToyObjective(net) for net in nets], [Optimizer(net, SGD) for net in nets]
    small: list[Any] = [None] * slots
    big: list[Any] = [None]
    for index in range(5):
        micros = [stream.batch(0, index * slots + slot) for slot in range(slots)]
        few, small = train_step(nets[0], tasks[0], optimizers[0], micros, small, lr=0.5, seed=(index,))
        one, big = train_step(
            nets[1], tasks[1], optimizers[1], [together(micros)], big, lr=0.5, seed=(index,)
        )
        assert few.loss == pytest.approx(one.loss, abs=1e-10)
        assert few.metrics["loss"] == pytest.approx(one.metrics["loss"], abs=1e-10)
        assert few.gradient_norm == pytest.approx(one.gradient_norm, abs=1e-10)
        carried = torch.cat([carry["h"] for carry in small])
        torch.testing.assert_close(carried, big[0]["h"], rtol=0, atol=1e-10)
    for first, second in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        torch.testing.assert_close(first, second, rtol=0, atol=1e-10)
    assert not torch.equal(nets[0].first, ToyModel(dtype=torch.float64).first), "the start was not learned"


def test_the_trainer_is_bit_equal_to_a_plain_loop(tmp_path: Path) -> None:
    """Dropout, batch norm, carry, two micro-batches, clipping, AdamW, warm-up and decay, averaging."""
    sections = {
        "training": {"budget": "11steps", "grad_accumulation": 2, "ema_decay": 0.9, "evaluate_every": 3}
    }
    trainer = toy_trainer(tmp_path / "run", toy_config(**sections, optimizer={"clip_norm": 0.3, "lr": 0.1}))
    model = trainer.model

    plain = ToyModel()
    matrices = [weight for weight in plain.parameters() if weight.dim() > 1]
    vectors = [weight for weight in plain.parameters() if weight.dim() == 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    adamw = torch.optim.AdamW(groups, betas=(0.9, 0.99), eps=1e-8, fused=True)
    weights = plain.state_dict()  # running statistics too, but not their count
    average = {name: weight.clone() for name, weight in weights.items() if weight.is_floating_point()}
    batches, hidden, losses = ToyBatches(per_epoch=12, slots=2), list[Any]([None, None]), []
    for step in range(11):
        plain.train()
        plain.zero_grad()
        pair = [batches.batch(*divmod(2 * step + slot, 12)) for slot in range(2)]
        characters = sum(float((batch.targets > 0).sum()) for batch in pair)
        total = 0.0
        for slot, batch in enumerate(pair):
            seed_everything(0, step, slot)
            start = plain.first.expand(3, D)
            if hidden[slot] is None:
                h = start
            else:
                assert batch.stream_starts is not None
                h = (
                    torch.where(batch.stream_starts[:, None], start, hidden[slot])
                    if batch.stream_starts.any()
                    else hidden[slot]
                )
            logits, h = plain(batch.inputs, h)
            crosses = nn.functional.cross_entropy(
                logits.flatten(0, 1), batch.targets.flatten(), reduction="sum"
            )
            loss = crosses / characters + 0.01 * logits.square().sum() / 6.0
            loss.backward()
            total += float(crosses.detach())
            hidden[slot] = h.detach()
        gradients = [weight.grad for weight in plain.parameters() if weight.grad is not None]
        norm = float(nn.utils.get_total_norm(gradients))
        for gradient in gradients:
            gradient.mul_(min(1.0, 0.3 / norm))
        losses.append((total / characters, norm))
        for group in adamw.param_groups:
            group["lr"] = 0.1 * min(1, (step + 1) / 2) * (1 if step < 6 else 1 - (step - 6) / 5)
        adamw.step()
        for name, mean in average.items():
            mean.lerp_(weights[name], 1 - min(0.9, (1 + step) / (10 + step)))

    trainer.run(SignalHandler())
    assert trainer.recorder.steps[0]["gradient_norm"] > 0.3, "nothing was clipped"
    for ours, theirs in zip(model.state_dict().values(), plain.state_dict().values(), strict=True):
        assert torch.equal(ours, theirs)
    assert trainer.state.average is not None
    assert trainer.state.average.tensors.keys() == average.keys()
    for name, mean in trainer.state.average.tensors.items():
        assert torch.equal(mean, average[name])
    assert [(step["loss"], step["gradient_norm"]) for step in trainer.recorder.steps] == losses


@pytest.mark.parametrize("start", ["zero", "learned"])
def test_a_chunk_of_the_whole_sequence_gives_the_gradient_of_full_bptt(start: str) -> None:
    whole = ToyBatches(rows=2).batch(0, 0)
    net = ToyModel(dropout=0.0, norm=False, dtype=torch.float64)
    if start == "zero":
        nn.init.zeros_(net.first)
    losses, _ = full_loss(net, whole, net.first.expand(2, D))
    expected = torch.autograd.grad(losses, list(net.parameters()))
    train_step(net, ToyObjective(net), Optimizer(net, SGD), [whole], [None], lr=1e-3, seed=())
    for weight, gradient in zip(net.parameters(), expected, strict=True):
        torch.testing.assert_close(weight.grad, gradient, rtol=1e-12, atol=1e-14)


def test_chunks_cut_the_gradient_but_not_the_state() -> None:
    """Two chunks: the second's loss is that of the whole sequence, its gradient stops at the cut."""
    whole = ToyBatches(rows=2).batch(0, 0)
    halves = [ToyBatch(whole.inputs[:, cut], whole.targets[:, cut], starts) for cut, starts in (
        (slice(0, 2), torch.tensor([True, True])),
        (slice(2, 5), torch.tensor([False, False])),
    )]  # fmt: skip
    net = ToyModel(dropout=0.0, norm=False, dtype=torch.float64)
    optimizer = Optimizer(net, SGD)
    carries: list[Any] = [None]
    _, carries = train_step(net, ToyObjective(net), optimizer, [halves[0]], carries, lr=1e-12, seed=())
    assert not carries[0]["h"].requires_grad
    _, middle = full_loss(net, halves[0], net.first.expand(2, D))
    expected = torch.autograd.grad(
        full_loss(net, halves[1], middle.detach())[0], list(net.parameters()), allow_unused=True
    )
    train_step(net, ToyObjective(net), optimizer, [halves[1]], carries, lr=1e-12, seed=())
    for weight, gradient in zip(net.parameters(), expected, strict=True):
        if gradient is None:
            assert weight is net.first
            assert weight.grad is None
        else:
            torch.testing.assert_close(weight.grad, gradient, rtol=1e-9, atol=1e-11)


def full_loss(net: ToyModel, batch: ToyBatch, h: Tensor) -> tuple[Tensor, Tensor]:
    """The task's objective, written out position by position."""
    loss = torch.zeros((), dtype=torch.float64)
    characters = (batch.targets > 0).sum()
    for t in range(batch.inputs.shape[1]):
        h = torch.tanh(net.input(net.table(batch.inputs[:, t])) + net.hidden(h))
        logits = net.projection(h)
        cross = logits.logsumexp(-1) - logits.gather(-1, batch.targets[:, t, None])[:, 0]
        loss = loss + cross.sum() / characters + 0.01 * logits.square().sum() / len(logits)
    return loss, h


def test_rows_that_begin_are_put_back_to_the_start_and_others_go_on() -> None:
    task = ToyObjective(ToyModel())
    carry = {"h": torch.randn(3, D), "seen": 4}
    batch = ToyBatches().batch(0, 0)
    begun = starting_carry(
        task, ToyBatch(batch.inputs, batch.targets, torch.tensor([False, True, False])), carry
    )
    assert torch.equal(begun["h"][1], task.model.first)
    assert torch.equal(begun["h"][[0, 2]], torch.as_tensor(carry["h"])[[0, 2]])
    begun["h"].sum().backward()
    assert torch.equal(gradient_of(task.model.first), torch.ones(D))
    assert starting_carry(task, ToyBatch(batch.inputs, batch.targets, None), carry) is None


def test_a_carry_has_storage_of_its_own() -> None:
    outputs = torch.randn(3, 5, D, requires_grad=True)
    settled = detach_carry({"last": outputs[:, -1], "count": 3, "none": None})
    assert settled["last"].untyped_storage().nbytes() == settled["last"].nbytes
    assert not settled["last"].requires_grad
    assert torch.equal(settled["last"], outputs[:, -1])
    assert (settled["count"], settled["none"]) == (3, None)


@dataclass
class Fault:
    """Makes one thing not finite while armed."""

    net: ToyModel
    armed: bool = False

    def spoil(self, value: Tensor) -> Tensor:
        return value * float("nan") if self.armed else value

    def in_module(self) -> str:
        self.net.hidden.register_forward_hook(lambda module, inputs, output: self.spoil(output))
        return "hidden (Linear)"

    def in_gradient(self) -> str:
        self.net.input.weight.register_hook(self.spoil)
        return "gradient of input.weight"

    def in_loss(self) -> str:
        return "the loss term size"


class SpoiltObjective(ToyObjective):
    fault: Fault

    def __call__(self, batch: ToyBatch, carry: Any) -> tuple[ObjectiveOutput, Any]:
        result, carry = super().__call__(batch, carry)
        size = result.terms["size"]
        spoilt = Term(self.fault.spoil(size.sum), size.weight, size.coefficient)
        return ObjectiveOutput(result.terms | {"size": spoilt}, result.metrics), carry


def everything(net: ToyModel, optimizer: Optimizer) -> dict[str, Tensor]:
    state = {f"state/{name}": value for name, value in values(optimizer.state()).items()}
    return {name: value.clone() for name, value in (net.state_dict() | state).items()}


@pytest.mark.parametrize("slots", [1, 2])
@pytest.mark.parametrize("place", ["in_module", "in_gradient", "in_loss"])
def test_a_bad_number_changes_nothing_and_its_place_is_named(place: str, slots: int) -> None:
    net = ToyModel()
    fault = Fault(net)
    name = getattr(fault, place)()
    task = SpoiltObjective(net) if place == "in_loss" else ToyObjective(net)
    task.fault = fault  # type: ignore[attr-defined]
    optimizer = Optimizer(net, OptimizerConfig(name="adamw"))
    stream = ToyBatches(slots=slots)
    carries: list[Any] = [None] * slots
    for index in range(3):
        before, fault.armed = everything(net, optimizer), index == 1
        micros = [stream.batch(0, index * slots + slot) for slot in range(slots)]
        done, carries = train_step(net, task, optimizer, micros, carries, lr=0.1, seed=(index,))
        after = everything(net, optimizer)
        same = all(torch.equal(before[key], after[key]) for key in before)
        assert same == fault.armed
        assert done.first_nonfinite == (name if fault.armed else None)
        assert all(carry["h"].isfinite().all() for carry in carries)
        assert not any(carry["h"].requires_grad for carry in carries)
    assert before["norm.num_batches_tracked"] > 0, "there was no running statistic to protect"


def test_rows_of_the_carry_that_are_not_finite_begin_again_and_others_stay() -> None:
    net = ToyModel(dropout=0.0, norm=False)
    optimizer = Optimizer(net, SGD)
    stream = ToyBatches(length=1000)
    _, carries = train_step(net, ToyObjective(net), optimizer, [stream.batch(0, 0)], [None], lr=0.1, seed=())
    carries[0]["h"][1] = float("inf")
    second = stream.batch(0, 1)
    _, healthy = net(second.inputs, carries[0]["h"])
    spoilt = {"h": carries[0]["h"].clone(), "seen": 1}
    spoilt["h"][1] = float("nan")
    done, after = train_step(net, ToyObjective(net), optimizer, [second], [spoilt], lr=0.1, seed=())
    assert done.first_nonfinite is not None
    assert torch.equal(after[0]["h"][1], net.first)
    torch.testing.assert_close(after[0]["h"][[0, 2]], healthy[[0, 2]])
    done, _ = train_step(net, ToyObjective(net), optimizer, [stream.batch(0, 2)], after, lr=0.1, seed=())
    assert done.first_nonfinite is None, "the run did not recover"


def test_a_norm_that_overflows_is_refused() -> None:
    net = ToyModel(dropout=0.0, norm=False)
    net.input.weight.register_hook(lambda gradient: torch.full_like(gradient, 1e30))
    old = net.input.weight.detach().clone()
    done, _ = train_step(
        net, ToyObjective(net), Optimizer(net, SGD), [ToyBatches().batch(0, 0)], [None], lr=0.1, seed=()
    )
    assert done.first_nonfinite == "the gradient's norm, which overflows"
    assert torch.equal(net.input.weight, old)


def test_noise_is_a_function_of_the_seed_alone() -> None:
    losses = []
    for disturbance in (0, 1):
        net = ToyModel(dropout=0.5)
        torch.rand(disturbance)
        done, _ = train_step(
            net,
            ToyObjective(net),
            Optimizer(net, SGD),
            [ToyBatches().batch(0, 0)],
            [None],
            lr=0.1,
            seed=(3, 4),
        )
        losses.append(done.loss)
    assert losses[0] == losses[1]


def test_vocabulary_is_that_of_the_stream() -> None:
    assert int(ToyBatches().batch(0, 0).inputs.max()) < V
