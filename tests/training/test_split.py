"""Processes that split the layers of a model (`--tp`) train as one process does, each with its parts."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from foveal import layers
from foveal.core.errors import UserError
from foveal.distributed.mesh import MeshRanks
from foveal.distributed.partial import PartialWeights
from foveal.distributed.split import describe_whole, split, split_modules
from foveal.distributed.tensor_group import TensorGroup
from foveal.distributed.tree import Gradients, Node, TreeSum, add_gradients
from foveal.distributed.world import World
from foveal.layers.blocks.fused_decode import plan_blocks
from foveal.ops.cross_entropy import cross_entropy_reference
from foveal.ops.split_cross_entropy import split_cross_entropy
from foveal.training.placed_weights import own_state_dict, whole_weights
from tests.support.ranks import run_ranks
from tests.support.short_trainings import ALL_KINDS, NOT_CUT, check_equal_launches, check_equal_training

NOT_SPLIT = {"audio-classification", "batch-norm", "hardest-rows", "ragged-batch-norm"}
NOT_SPLIT |= {"series-classification", "series-tagging"}
"""Kinds without a layer that can be split."""
OFTEN = ("translation",)
"""A kind that is compared at every change: attention of every kind, MLP, embedding and loss."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    torch.set_num_threads(1)
    return tmp_path


def check_equal(kind: str, slots: int, processes: int, parts: int, folder: Path, *more: Any) -> None:
    check_equal_training(kind, slots, processes, partial(MeshRanks, tp=parts), folder, *more)


@pytest.mark.parametrize(
    "kind",
    [
        *OFTEN,
        *(
            pytest.param(kind, marks=pytest.mark.slow)
            for kind in sorted(ALL_KINDS.keys() - NOT_CUT - NOT_SPLIT - {*OFTEN})
        ),
    ],
)
def test_a_split_model_trains_as_a_whole_one(kind: str, folder: Path) -> None:
    check_equal(kind, 1, 2, 2, folder)


def test_ranks_of_two_processes(folder: Path) -> None:
    """Two ranks share three slots each, and each rank is two processes."""
    check_equal("translation", 6, 4, 2, folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["muon", "adagrad"])
def test_optimizers(name: str, folder: Path) -> None:
    check_equal("language-model", 1, 2, 2, folder, "float32", name)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_equal_bits_from_launch_to_launch(precision: str, folder: Path) -> None:
    check_equal_launches("experts", 1, 2, partial(MeshRanks, tp=2), folder, precision)


V, WIDTH, HEADS = 7, 12, 6


def build(tied: bool = False, swiglu: bool = False) -> layers.DecoderLM:
    """Return a language model whose sizes 3 ranks can't share equally, but for the heads."""
    torch.manual_seed(0)
    network = layers.SwiGLU(WIDTH, 8) if swiglu else layers.MLP(WIDTH, 8)
    block = layers.Block(layers.SelfAttention(WIDTH, HEADS), network, norm="layer", residual=True)
    model = layers.DecoderLM(layers.Embedding(V, WIDTH), layers.Stack([block]), WIDTH, tied=tied)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model.double()


def parts_of(world: World, tied: bool, swiglu: bool) -> dict[str, Any]:
    model = build(tied, swiglu)
    ranks = MeshRanks(world.rank, world.size, world.size)
    placement = ranks.place(model, lambda: None)
    tokens = torch.arange(2 * 5).view(2, 5) % V
    features, _, _ = model(tokens)
    logits = model.project(features)
    sums = model.losses(features.flatten(0, 1), tokens.flatten(), 0.1)
    (sums.label_smoothed + logits.square().sum()).backward()
    names = [name for name, _ in model.named_parameters()]
    own = own_state_dict(model, placement)
    tree = TreeSum[Gradients](1, add_gradients)
    tree.add(Node(0, 0), [placement.take_gradient(weight) for weight in model.parameters()])
    gradients = ranks.sum(tree, list(own.values()))
    state = model.init_state(None, 2, 5)
    steps = []
    with torch.no_grad():
        for t in range(5):
            step, state, _ = model(tokens[:, t : t + 1], state)
            steps.append(model.project(step))
    return {
        "sizes": {name: tuple(value.shape) for name, value in own.items()},
        "whole": dict(whole_weights(model, placement)),
        "counts": {name: placement.counts(value) for name, value in own.items()},
        "gradients": {
            name: placement.whole(gradient, own[name])
            for name, gradient in zip(names, gradients, strict=True)
            if gradient is not None
        },
        "logits": logits.detach(),
        "steps": torch.cat(steps, 1),
        "loss": float(sums.nll),
    }


@pytest.mark.parametrize(("tied", "swiglu"), [(False, False), (True, True)])
def test_parts_of_a_language_model(tied: bool, swiglu: bool) -> None:
    """Outputs, gradients and single steps are those of the whole model; each process has its part."""
    model = build(tied, swiglu)
    tokens = torch.arange(2 * 5).view(2, 5) % V
    logits = model.project(model(tokens)[0])
    sums = cross_entropy_reference(logits.flatten(0, 1), tokens.flatten(), 0.1)
    (sums.label_smoothed + logits.square().sum()).backward()
    states = run_ranks(3, parts_of, tied, swiglu)
    for state in states:
        for name, weight in model.named_parameters():
            assert torch.equal(state["whole"][name], weight), name
            assert weight.grad is not None
            assert torch.allclose(state["gradients"][name], weight.grad, rtol=1e-10, atol=1e-10), name
        assert torch.allclose(state["logits"], logits, atol=1e-12)
        assert torch.allclose(state["steps"], logits, atol=1e-12)
        assert state["loss"] == pytest.approx(float(sums.nll), rel=1e-12)
    sizes = [state["sizes"] for state in states]
    block = "stack.blocks.0"
    assert [size["embedding.table"] for size in sizes] == [(3, WIDTH), (3, WIDTH), (1, WIDTH)]
    assert [size[f"{block}.mixer.query.weight"] for size in sizes] == 3 * [(4, WIDTH)]
    assert [size[f"{block}.mixer.output.weight"] for size in sizes] == 3 * [(WIDTH, 4)]
    assert [size[f"{block}.mixer.output.bias"] for size in sizes] == 3 * [(WIDTH,)]
    assert [size[f"{block}.feedforward.expand.weight"][0] for size in sizes] == [3, 3, 2]
    assert [size[f"{block}.feedforward.contract.weight"][1] for size in sizes] == [3, 3, 2]
    assert [state["counts"][f"{block}.mixer.output.bias"] for state in states] == [True, False, False]
    assert all(state["counts"]["embedding.table"] for state in states)


def split_loss(world: World, smoothing: float) -> tuple[float, float, Tensor, Tensor]:
    """Return both sums, the gradient of the inputs, and that of all rows of the weights."""
    ranks = MeshRanks(world.rank, world.size, world.size)
    torch.manual_seed(1)
    h, weight, bias = (torch.randn(*size).double() for size in ((9, 4), (V, 4), (V,)))
    model = nn.Module()
    model.projection = layers.DecoderLM(
        layers.OneHot(V), layers.Stack([layers.Block(layers.GRU(V, 4))]), 4
    ).double()
    placement = ranks.place(model, lambda: None)
    assert isinstance(placement, PartialWeights)
    group = model.projection.group
    rows = group.rows(V)
    h = h.requires_grad_()
    own = weight[rows].requires_grad_()
    sums = split_cross_entropy(h, own, bias[rows], torch.arange(9) % V, V, group, smoothing)
    sums.label_smoothed.backward()
    assert h.grad is not None
    assert own.grad is not None
    whole = placement.whole(own.grad, placement.own_weight("projection.projection.weight", own))
    return float(sums.label_smoothed.detach()), float(sums.nll), h.grad, whole


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("ranks", [2, 3])
def test_the_loss_without_whole_logits(smoothing: float, ranks: int) -> None:
    torch.manual_seed(1)
    h, weight, bias = (torch.randn(*size).double() for size in ((9, 4), (V, 4), (V,)))
    h, weight = h.requires_grad_(), weight.requires_grad_()
    expected = cross_entropy_reference(h @ weight.T + bias, torch.arange(9) % V, smoothing)
    expected.label_smoothed.backward()
    for smoothed, nll, of_inputs, of_weights in run_ranks(ranks, split_loss, smoothing):
        assert smoothed == pytest.approx(float(expected.label_smoothed.detach()), rel=1e-12)
        assert nll == pytest.approx(float(expected.nll), rel=1e-12)
        assert torch.allclose(of_inputs, h.grad, atol=1e-12)  # type: ignore[arg-type]
        assert torch.allclose(of_weights, weight.grad, atol=1e-12)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: layers.SelfAttention(12, 4), "--tp 3: the model: 4 heads can't be split among 3 ranks"),
        (lambda: layers.SelfAttention(12, 3, window=4), "the keys of a window"),
        (lambda: nn.Sequential(layers.MLP(4, 2)), "--tp 3: 0: 2 hidden units can't be split among 3 ranks"),
        (lambda: layers.SwiGLU(4, 4), "4 hidden units can't be split"),
        (lambda: layers.Embedding(2, 4), "2 tokens can't be split"),
        (lambda: layers.GRU(4, 4), "no layer of this model can be split; attention, MLP"),
    ],
)
def test_what_can_not_be_split(make: Any, message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        split(make(), TensorGroup(0, 3))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("make", "note"),
    [
        (lambda: layers.MLP(64, 256), ""),
        (
            lambda: nn.Sequential(layers.Embedding(10, 64), layers.GRU(64, 64)),
            "--tp 2 splits 3% of the weights; each process has the others whole: GRUCell",
        ),
    ],
)
def test_layers_without_a_plan_are_named(make: Any, note: str) -> None:
    model = make()
    assert describe_whole(model, split(model, TensorGroup(0, 2)), 2) == note


def test_a_table_that_a_whole_layer_reads_stays_whole() -> None:
    """The head of masked language models has no plan, so neither has a table that it shares."""
    embedding = layers.Embedding(9, 4)
    head = layers.MaskedLMHead(4, 9, embedding.table)
    assert split_modules(nn.ModuleDict({"embedding": embedding})).keys() == {"embedding"}
    assert not split_modules(nn.ModuleDict({"embedding": embedding, "head": head}))


def test_the_kernel_of_whole_blocks() -> None:
    mixer, network = layers.SelfAttention(32, 2), layers.MLP(32, 64)
    block = layers.Block(mixer, network, norm="layer", residual=True).eval()
    assert plan_blocks([block]) != [None]
    split(block, TensorGroup(0, 2))
    assert plan_blocks([block]) == [None]


def refused(world: World) -> str:
    ranks = MeshRanks(world.rank, world.size, world.size)
    with pytest.raises(UserError) as error:
        ranks.check(lambda: layers.SelfAttention(9, 3))
    return str(error.value)


def test_a_check_needs_no_weights() -> None:
    assert run_ranks(2, refused) == 2 * ["--tp 2: the model: 3 heads can't be split among 2 ranks"]
