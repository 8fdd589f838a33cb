"""An expert layer whose balance reaches the task's objective through `aux`."""

from contextlib import nullcontext
from typing import Any, TypeVar

import pytest
import torch
from torch import Tensor, nn

from foveal.config import OptimizerConfig
from foveal.data.core.batching import TokenBatch
from foveal.data.text.tokenizers import CharacterTokenizer
from foveal.heads.decoder_lm import DecoderLM
from foveal.layers.blocks.feedforward import MLP
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.blocks.moe import Experts
from foveal.layers.blocks.stack import Stack
from foveal.layers.embedding import Embedding
from foveal.layers.mixers.recurrent import Recurrent
from foveal.layers.mixers.recurrent_cells import LSTMCell
from foveal.layers.mixers.self_attention import SelfAttention
from foveal.objectives.language_model import LanguageModelObjective
from foveal.ops.jit.dispatch import reference_only
from foveal.training.optim import Optimizer
from foveal.training.slot_steps import total_loss, total_weights
from foveal.training.step import train_step

ModuleT = TypeVar("ModuleT", bound=nn.Module)

B, T, D, E = 3, 6, 8, 4


def grown(module: ModuleT) -> ModuleT:
    for parameter in module.parameters():
        nn.init.uniform_(parameter, -0.7, 0.7)
    return module.double()


def experts_stack() -> Stack:
    return Stack(
        [
            Block(SelfAttention(D, 2), Experts(D, 6, E, 2), "layer", residual=True),
            Block(Recurrent(LSTMCell(D, D)), MLP(D, 6), residual=True),
            Block(SelfAttention(D, 2, window=2), Experts(D, 6, E, 1), "rms", residual=True),
        ]
    )


def language(dtype: torch.dtype = torch.float64) -> LanguageModelObjective:
    tokenizer = CharacterTokenizer("abcdefgh")
    model = DecoderLM(Embedding(8, D), experts_stack(), D)
    return LanguageModelObjective(grown(model).to(dtype), tokenizer, carry_state=False)


def tokens(rows: int, lengths: list[int] | None = None) -> TokenBatch:
    ids = torch.randint(8, (rows, T + 1))
    return TokenBatch(ids[:, :-1], ids[:, 1:], lengths=None if lengths is None else torch.tensor(lengths))


def test_balance_is_the_published_sum():
    layer = grown(Experts(D, 6, E, 1, coefficient=1.0))
    x = torch.randn(1, T, D, dtype=torch.float64)
    _, aux = layer(x, None)
    chances = layer.router(x)[0].softmax(-1)
    expected = E * sum((chances.argmax(-1) == e).double().mean() * chances[:, e].mean() for e in range(E))
    torch.testing.assert_close(aux["balance"], expected[None])
    nn.init.zeros_(layer.router.weight)
    torch.testing.assert_close(layer(x, None)[1]["balance"], torch.ones(1, dtype=torch.float64))


def test_balance_ignores_padding():
    """A row in a padded batch has the balance it has alone; a row of nothing has none, and stays finite."""
    stack, lengths = grown(experts_stack()), [T, 2, 0]
    x = torch.randn(B, T, D, dtype=torch.float64)
    for b, n in enumerate(lengths):
        x[b, n:] = torch.nan
    _, _, aux = stack(x, lengths=torch.tensor(lengths))
    for b, n in enumerate(lengths[:2]):
        _, _, alone = stack(x[b : b + 1, :n])
        torch.testing.assert_close(alone["balance"][0], aux["balance"][b], rtol=1e-10, atol=1e-10)
    assert aux["balance"][2] == 0
    gradients = torch.autograd.grad(aux["balance"].sum(), list(stack.parameters()), allow_unused=True)
    assert all(gradient.isfinite().all() for gradient in gradients if gradient is not None)


@pytest.mark.parametrize("path", [reference_only, nullcontext])
def test_causality(path):
    """Equal to 1e-10: an expert's product has another shape if other vectors are routed to the expert."""
    stack, x = grown(experts_stack()), torch.randn(B, T, D, dtype=torch.float64)
    with path():
        y, _, _ = stack(x)
        for t in range(1, T):
            other = x.clone()
            other[:, t:] = 1e3
            torch.testing.assert_close(stack(other)[0][:, :t], y[:, :t], rtol=1e-10, atol=1e-10)


def test_the_stack_adds_up_its_layers():
    stack, x = grown(experts_stack()), torch.randn(B, T, D, dtype=torch.float64)
    total = stack(x)[2]["balance"]
    parts = []
    for block in stack.blocks:
        x, _, aux = block(x)
        parts.append(aux)
    assert [sorted(aux) for aux in parts] == [["balance"], [], ["balance"]]
    torch.testing.assert_close(total, parts[0]["balance"] + parts[2]["balance"])


@pytest.mark.parametrize("lengths", [None, [T, 4, 1, 0]])
def test_balance_reaches_the_objective(lengths):
    """A term of the result with a weight known from the batch; micro-batches equal one big batch."""
    task, batch = language(), tokens(4, lengths)
    assert task.model.aux_names == ["balance"]
    result, _ = task(batch, None)
    _, _, aux = task.model(batch.inputs, None, batch.lengths)
    torch.testing.assert_close(result.terms["balance"].sum, aux["balance"].sum(), rtol=1e-12, atol=0)
    assert {name: term.weight for name, term in result.terms.items()} == task.weights(batch)
    parameters = list(task.model.parameters())

    def gradient(batches: list[TokenBatch]) -> tuple[Tensor, ...]:
        totals = total_weights(task, batches)
        loss = torch.stack([total_loss(task(part, None)[0], totals) for part in batches]).sum()
        return torch.autograd.grad(loss, parameters)

    halves = [
        TokenBatch(
            batch.inputs[rows],
            batch.targets[rows],
            None,
            None if batch.lengths is None else batch.lengths[rows],
        )
        for rows in (slice(0, 1), slice(1, 4))
    ]
    for a, b in zip(gradient(halves), gradient([batch]), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


def test_training_spreads_the_load():
    """From a router that sends all to one expert, by the trainer's own step on nothing but the balance."""
    torch.manual_seed(1)
    task = language(torch.float32)
    block: Any
    for block in (task.model.stack.blocks[0], task.model.stack.blocks[2]):
        block.feedforward.coefficient = 10.0
        nn.init.zeros_(block.feedforward.router.weight)
        with torch.no_grad():
            block.feedforward.router.weight[0] = 1.0
    optimizer, batch = Optimizer(task.model, OptimizerConfig(name="adam")), tokens(16)
    before = task(batch, None)[0].terms["balance"].sum.item() / 16
    for step in range(60):
        train_step(task.model, task, optimizer, [batch], [None], lr=0.02, seed=(0, step))
    after = task(batch, None)[0].terms["balance"].sum.item() / 16
    assert before > 22
    assert after < 21
