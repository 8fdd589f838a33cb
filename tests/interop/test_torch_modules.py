"""Modules of torch.nn and stacks of ours compute the same, there and back."""

from collections.abc import Callable
from typing import Any, TypeVar

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.core.errors import UserError
from foveal.interop.torch_modules import (
    from_torch_rnn,
    from_torch_transformer,
    to_torch_rnn,
    to_torch_transformer,
)
from foveal.layers.blocks.feedforward import MLP, SwiGLU
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.blocks.stack import Stack
from foveal.layers.mixers.bidirectional import Bidirectional
from foveal.layers.mixers.recurrent import Recurrent
from foveal.layers.mixers.recurrent_cells import ElmanCell, GRUCell, LSTMCell
from foveal.layers.mixers.self_attention import SelfAttention
from foveal.layers.position import AddPositions, SinusoidalPosition

ModuleT = TypeVar("ModuleT", bound=nn.Module)

B, T, D, H = 3, 9, 6, 8
RECURRENT: dict[str, Callable[..., Any]] = {
    "rnn": lambda **more: nn.RNN(D, H, **more),
    "relu": lambda **more: nn.RNN(D, H, nonlinearity="relu", **more),
    "lstm": lambda **more: nn.LSTM(D, H, **more),
    "gru": lambda **more: nn.GRU(D, H, **more),
}
CAUSAL = nn.Transformer.generate_square_subsequent_mask(T)


def grown(module: ModuleT, size: float = 0.6) -> ModuleT:
    """Every parameter drawn anew, large enough that a mistake shows."""
    for parameter in module.parameters():
        nn.init.uniform_(parameter, -size, size)
    return module.eval()


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", list(RECURRENT))
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("bias", [True, False])
def test_recurrent_there_and_back(name: str, layers: int, bias: bool) -> None:
    theirs = grown(RECURRENT[name](num_layers=layers, bias=bias, batch_first=True))
    ours = from_torch_rnn(theirs)
    x = torch.randn(B, T, D)
    expected, last = theirs(x)
    y, state, _ = ours(x)
    close(y, expected)
    parts = last if isinstance(last, tuple) else (last,)
    for part, values in zip(("h", "c"), parts, strict=False):
        for layer in range(layers):
            close(state["blocks"][layer][part], values[layer])
    back = to_torch_rnn(ours)
    assert type(back) is type(theirs)
    close(back(x)[0], expected)
    for layer in range(layers):
        second = back.get_parameter(f"bias_hh_l{layer}")
        assert second[: 2 * H].eq(0).all(), "one bias is enough"
        assert second[2 * H :].any() == (name == "gru" and bias), "but for b_hn"
    again = from_torch_rnn(back).state_dict()
    assert all(torch.equal(value, again[key]) for key, value in ours.state_dict().items())


@pytest.mark.parametrize("name", list(RECURRENT))
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("bias", [True, False])
def test_both_directions_there_and_back(name: str, layers: int, bias: bool) -> None:
    """Rows of several lengths, too: the way back begins at each one's own end."""
    theirs = grown(RECURRENT[name](num_layers=layers, bias=bias, batch_first=True, bidirectional=True))
    ours, x, lengths = from_torch_rnn(theirs), torch.randn(B, T, D), torch.tensor([T, 4, 7])
    close(ours(x)[0], theirs(x)[0])
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    expected, _ = nn.utils.rnn.pad_packed_sequence(theirs(packed)[0], batch_first=True)
    close(ours(x, lengths=lengths)[0], expected)
    again = to_torch_rnn(ours)
    close(again(x)[0], theirs(x)[0])
    assert torch.equal(from_torch_rnn(again)(x)[0], ours(x)[0])


def test_directions_that_are_added_are_not_torchs() -> None:
    block = Block(Bidirectional(Recurrent(LSTMCell(D, H)), Recurrent(LSTMCell(D, H)), "sum"))
    with pytest.raises(UserError, match="in one direction or in two directions"):
        to_torch_rnn(Stack([block]))


def test_recurrent_keeps_its_precision() -> None:
    ours = from_torch_rnn(nn.GRU(D, H).double())
    assert all(parameter.dtype == torch.float64 for parameter in ours.parameters())
    assert to_torch_rnn(ours).weight_ih_l0.dtype == torch.float64


def test_recurrent_that_is_not_ours() -> None:
    for theirs in (nn.LSTM(D, H, proj_size=2), nn.LSTM(D, H, proj_size=2, bidirectional=True)):
        with pytest.raises(UserError, match="Foveal has no proj_size"):
            from_torch_rnn(theirs)


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([Block(Recurrent(GRUCell(D, H, reset_after=False)))], "resets after the recurrent product"),
        ([Block(Recurrent(LSTMCell(D, H)), norm="layer")], "single cells"),
        ([Block(Recurrent(LSTMCell(H, H)), residual=True)], "single cells"),
        ([Block(Recurrent(LSTMCell(D, H)), MLP(H, H))], "single cells"),
        ([Block(SelfAttention(H, 2))], "single cells"),
        ([Block(Recurrent(LSTMCell(D, H))), Block(Recurrent(GRUCell(H, H)))], "the same cell and width"),
        ([Block(Recurrent(LSTMCell(D, H))), Block(Recurrent(LSTMCell(H, D)))], "the same cell and width"),
        (
            [Block(Recurrent(ElmanCell(D, H))), Block(Recurrent(ElmanCell(H, H, "relu")))],
            "the same nonlinearity",
        ),
    ],
)
def test_stacks_that_are_not_torchs(blocks: list[nn.Module], message: str) -> None:
    with pytest.raises(UserError, match=message):
        to_torch_rnn(Stack(blocks))


def test_a_learned_start_is_not_torchs() -> None:
    stack = Stack([Block(Recurrent(LSTMCell(D, H), learned_start=True))])
    to_torch_rnn(stack)  # zeros at first
    grown(stack)
    with pytest.raises(UserError, match="initial state of zeros"):
        to_torch_rnn(stack)


def encoder(norm_first: bool, bias: bool = True, **more: Any) -> nn.TransformerEncoder:
    settings: dict[str, Any] = {
        "dim_feedforward": 20,
        "dropout": 0.3,
        "layer_norm_eps": 1e-3,
        "batch_first": True,
    }
    layer = nn.TransformerEncoderLayer(H, 2, norm_first=norm_first, bias=bias, **settings | more)
    norm = nn.LayerNorm(H, eps=1e-4, bias=bias) if norm_first else None
    return grown(nn.TransformerEncoder(layer, 3, norm, enable_nested_tensor=False))


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("bias", [True, False])
def test_transformer_there_and_back(norm_first: bool, activation: str, bias: bool) -> None:
    theirs = encoder(norm_first, bias, activation=activation)
    ours, norm = from_torch_transformer(theirs)
    assert (norm is not None) == norm_first
    x = torch.randn(B, T, H)
    # torch's fast path without gradients is another one than with.
    expected = theirs(x, mask=CAUSAL, is_causal=True)
    y, _, _ = ours(x)
    close(norm(y) if norm else y, expected)
    assert (y - ours(x.flip(1))[0].flip(1)).abs().max() > 1e-2, "causal"
    back = to_torch_transformer(ours, norm).eval()
    close(back(x, mask=CAUSAL, is_causal=True), expected)
    again, _ = from_torch_transformer(back)
    assert all(torch.equal(value, again.state_dict()[key]) for key, value in ours.state_dict().items())


def test_transformers_that_are_not_ours() -> None:
    with pytest.raises(UserError, match="activation"):
        from_torch_transformer(encoder(True, activation=F.mish))
    theirs = encoder(True)
    theirs.norm = nn.LayerNorm(H, elementwise_affine=False)
    with pytest.raises(UserError, match=r"only nn\.LayerNorm with a weight"):
        from_torch_transformer(theirs)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (Block(SelfAttention(H, 2, window=3), MLP(H, H), "layer", residual=True), "without windows"),
        (Block(SelfAttention(H, 2, rotary=True), MLP(H, H), "layer", residual=True), "without windows"),
        (Block(Recurrent(LSTMCell(H, H)), MLP(H, H), "layer", residual=True), "only self-attention"),
        (Block(SelfAttention(H, 2), MLP(H, H), "rms", residual=True), "LayerNorm, residuals and an MLP"),
        (Block(SelfAttention(H, 2), MLP(H, H), "layer"), "LayerNorm, residuals and an MLP"),
        (Block(SelfAttention(H, 2), SwiGLU(H, H), "layer", residual=True), "LayerNorm, residuals and an MLP"),
        (Block(SelfAttention(H, 2), None, "layer", residual=True), "LayerNorm, residuals and an MLP"),
    ],
)
def test_blocks_that_are_not_torchs(block: Block, message: str) -> None:
    with pytest.raises(UserError, match=message):
        to_torch_transformer(Stack([block]))


def test_positions_are_not_torchs() -> None:
    blocks: list[nn.Module] = [Block(SelfAttention(H, 2), MLP(H, H), "layer", residual=True)]
    with pytest.raises(UserError, match="has no positions"):
        to_torch_transformer(Stack(blocks, AddPositions(SinusoidalPosition(H), "add")))
