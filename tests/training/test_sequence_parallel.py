"""The stream between split layers is cut along the sequence: each process has some positions of it."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from foveal import layers
from foveal.core.recompute import recomputing
from foveal.distributed.mesh import MeshRanks
from foveal.distributed.tree import Gradients, Node, TreeSum, add_gradients
from foveal.distributed.world import World
from foveal.training.placed_weights import own_state_dict
from tests.support.ranks import run_ranks

RANKS, V, WIDTH = 3, 7, 12


def block(feedforward: nn.Module | None = None, rotary: bool = False, **settings: Any) -> layers.Block:
    mixer = layers.SelfAttention(WIDTH, 6, rotary=rotary)
    feedforward = layers.MLP(WIDTH, 8) if feedforward is None else feedforward
    chosen: dict[str, Any] = {"norm": "layer", "residual": True, "dropout": 0.3} | settings
    return layers.Block(mixer, feedforward, **chosen)


def decoder(*blocks: layers.Block, positioned: Any = None, width: int = WIDTH, **more: Any) -> nn.Module:
    return layers.DecoderLM(layers.Embedding(V, width), layers.Stack([*blocks], positioned), WIDTH, **more)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "pre-norm, rotary": lambda: decoder(block(rotary=True), block(), norm=layers.LayerNorm(WIDTH)),
    "post-norm, sinusoids": lambda: decoder(
        block(norm="rms", norm_placement="post"),
        positioned=layers.AddPositions(layers.SinusoidalPosition(WIDTH), "add", layers.RMSNorm(WIDTH)),
    ),
    "learned positions beside": lambda: decoder(
        block(layers.SwiGLU(WIDTH, 8)),
        positioned=layers.AddPositions(layers.LearnedPosition(9, WIDTH // 2), "concatenate"),
        width=WIDTH // 2,
    ),
    "tied, norm of the embedding": lambda: decoder(
        block(layers.Highway(WIDTH)), tied=True, embedding_norm=layers.LayerNorm(WIDTH)
    ),
    "experts": lambda: decoder(
        block(layers.Experts(WIDTH, 8, 4, 2, capacity=0.75)), norm=layers.RMSNorm(WIDTH)
    ),
    "lookup": lambda: decoder(block(), lookup=layers.NgramLookup(V, WIDTH, 4)),
    "one-hot": lambda: layers.DecoderLM(
        layers.OneHot(WIDTH), layers.Stack([block(layers.MLP(WIDTH, 8))]), WIDTH
    ),
    "a recurrent mixer": lambda: decoder(
        block(), layers.Block(layers.GRU(WIDTH, WIDTH), layers.MLP(WIDTH, 8), "layer", residual=True)
    ),
}
OFTEN = ["pre-norm, rotary", "post-norm, sinusoids", "experts"]
"""Models that are compared at every change."""
LENGTHS = [None, [5, 2], [1, 1]]
"""Rows of five positions, of which one rank has but one; ragged ones; one position, which one rank has."""


def make(name: str, dtype: torch.dtype) -> nn.Module:
    torch.manual_seed(0)
    model = MODELS[name]()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model.to(dtype)


def loss_of(model: nn.Module, lengths: list[int] | None) -> Tensor:
    """Return the loss of two rows, with dropout that a seed decides."""
    tokens = torch.arange(2 * 5).view(2, 5)[:, : max(lengths or [5])] % V
    torch.manual_seed(3)
    with recomputing(lengths is None):
        features, _, aux = model(tokens, None, None if lengths is None else torch.tensor(lengths))
    sums = model.losses(features.flatten(0, 1), tokens.flatten())  # type: ignore[operator]
    loss: Tensor = sums.label_smoothed + sum(value.sum() for value in aux.values())
    return loss


def gradients_on(world: World, dtype: torch.dtype, names: list[str]) -> list[tuple[float, Gradients]]:
    """Return the loss and the whole gradients of each model and batch."""
    results = []
    for name in names:
        ranks = MeshRanks(world.rank, world.size, world.size)
        model = make(name, dtype)
        placement = ranks.place(model, lambda: None)
        own = own_state_dict(model, placement)
        weights = [own[weight] for weight, _ in model.named_parameters()]
        for lengths in LENGTHS:
            loss = loss_of(model, lengths)
            loss.backward()
            tree = TreeSum[Gradients](1, add_gradients)
            tree.add(Node(0, 0), [placement.take_gradient(weight) for weight in model.parameters()])
            pairs = zip(ranks.sum(tree, weights), weights, strict=True)
            wholes = [None if gradient is None else placement.whole(gradient, own) for gradient, own in pairs]
            results.append((loss.item(), wholes))
    return results


@pytest.mark.parametrize(
    ("dtype", "names", "tolerance"),
    [
        pytest.param(torch.float64, OFTEN, 1e-12, id="often"),
        pytest.param(torch.float64, [*MODELS], 1e-12, id="all", marks=pytest.mark.slow),
        pytest.param(torch.float32, OFTEN[:1], 1e-5, id="noise of the kernel", marks=pytest.mark.slow),
    ],
)
def test_one_process_has_the_same_loss_and_gradients(
    dtype: torch.dtype, names: list[str], tolerance: float
) -> None:
    by_rank = [iter(results) for results in run_ranks(RANKS, gradients_on, dtype, names)]
    for name in names:
        model = make(name, dtype)
        for lengths in LENGTHS:
            model.zero_grad()
            loss = loss_of(model, lengths)
            loss.backward()
            for results in by_rank:
                other, gradients = next(results)
                assert other == pytest.approx(loss.item(), rel=tolerance), name
                for (path, weight), gradient in zip(model.named_parameters(), gradients, strict=True):
                    assert gradient is not None, (name, path)
                    assert weight.grad is not None, (name, path)
                    near = torch.allclose(gradient, weight.grad, rtol=tolerance, atol=tolerance)
                    assert near, (name, path, lengths)


def positions_on(world: World, names: list[str]) -> list[list[int]]:
    """Return how many positions each block and the last norm of each model pass on."""
    results = []
    for name in names:
        model: Any = make(name, torch.float64)
        MeshRanks(world.rank, world.size, world.size).place(model, lambda: None)
        passed: list[int] = []
        for module in (*model.stack.blocks, model.norm):
            module.register_forward_hook(lambda module, inputs, y, passed=passed: passed.append(_count(y)))
        loss_of(model, [5, 5])
        results.append(passed)
    return results


def _count(output: Any) -> int:
    y: Tensor = output[0] if isinstance(output, tuple) else output
    return y.shape[1]


def test_a_process_has_its_positions() -> None:
    """Equal numbers of them, but for the last process. With a recurrent mixer, each has all."""
    of_ranks = run_ranks(RANKS, positions_on, ["pre-norm, rotary", "a recurrent mixer"])
    assert of_ranks == [[3 * [own], 3 * [5]] for own in (2, 2, 1)]
