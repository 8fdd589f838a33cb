"""The layers equal torch.nn on the same weights, or the equation written out.

E1, E2 ... are entries of docs/errata.md, a list of mistakes on lecture slides.
"""

import math
from contextlib import nullcontext
from typing import Any, TypeVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from foveal.layers.blocks.feedforward import MLP, SwiGLU
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.blocks.stack import Stack
from foveal.layers.mixers.recurrent import Recurrent
from foveal.layers.mixers.recurrent_cells import ElmanCell, GRUCell, LSTMCell
from foveal.layers.mixers.self_attention import SelfAttention
from foveal.layers.norm import LayerNorm, RMSNorm
from foveal.layers.position import AddPositions, LearnedPosition, SinusoidalPosition
from foveal.ops.attention.dot_product import attention_weights
from foveal.ops.attention.rotary import apply_rotary
from foveal.ops.jit.dispatch import reference_only

ModuleT = TypeVar("ModuleT", bound=nn.Module)

B, T, D, H = 3, 7, 6, 8
pytestmark = pytest.mark.usefixtures("path")


@pytest.fixture(params=["reference", "default"])
def path(request):
    torch.set_default_dtype(torch.float64)
    with reference_only() if request.param == "reference" else nullcontext():
        yield
    torch.set_default_dtype(torch.float32)


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


def gradients(outputs: list[Tensor], wanted: list[Tensor]) -> list[Tensor]:
    """Of a fixed functional that weighs every number of `outputs` differently."""
    loss = torch.stack([(out * torch.arange(out.numel()).view_as(out).cos()).sum() for out in outputs]).sum()
    return list(torch.autograd.grad(loss, wanted))


def same(
    outputs: list[Tensor], wanted: list[Tensor], theirs: list[Tensor], their_wanted: list[Tensor]
) -> None:
    """Equal values and equal gradients."""
    for a, b in zip(outputs, theirs, strict=True):
        close(a, b)
    for a, b in zip(gradients(outputs, wanted), gradients(theirs, their_wanted), strict=True):
        close(a, b)


def grown(module: ModuleT) -> ModuleT:
    """The module with every parameter drawn anew, large enough that a mistake shows."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.uniform_(-0.8, 0.8)
    return module


def fold(cell: nn.Module, theirs: nn.RNNBase, layer: int = 0) -> None:
    """torch's two biases into our one; the GRU's b_hn is inside the reset gate's product and stays apart."""
    W_x, W_h, b_x, b_h = (getattr(theirs, f"{name}_l{layer}").detach() for name in TORCH_NAMES)
    cell.weight_input.data, cell.weight_hidden.data = W_x.clone(), W_h.clone()
    if isinstance(cell, GRUCell):
        split = torch.arange(len(b_h)) >= 2 * cell.width
        cell.bias.data = b_x + b_h.masked_fill(split, 0.0)
        assert cell.bias_new is not None
        cell.bias_new.data = b_h[split]
    else:
        cell.bias.data = b_x + b_h


TORCH_NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
CELLS = {
    "rnn-tanh": (lambda: ElmanCell(D, H), lambda: nn.RNN(D, H, batch_first=True)),
    "rnn-relu": (
        lambda: ElmanCell(D, H, "relu"),
        lambda: nn.RNN(D, H, nonlinearity="relu", batch_first=True),
    ),
    # E18: the gates lie in the order i, f, g, o, as torch's (slides: i, f, o, g; ONNX: i, o, f, g).
    "lstm": (lambda: LSTMCell(D, H), lambda: nn.LSTM(D, H, batch_first=True)),
    # E19: reset_after=true is torch's GRU; the published one is reset_after=false.
    "gru": (lambda: GRUCell(D, H, reset_after=True), lambda: nn.GRU(D, H, batch_first=True)),
}


@pytest.mark.parametrize("name", list(CELLS))
@pytest.mark.parametrize("lengths", [None, [T, 2, 5]])
def test_recurrent_equals_torch(name, lengths):
    make, make_theirs = CELLS[name]
    ours, theirs = Recurrent(make()), grown(make_theirs())
    fold(ours.cell, theirs)
    x = torch.randn(B, T, D, requires_grad=True)
    start = {part: torch.randn(B, H) for part in ours.cell.sizes}
    y, last = ours(x, start, lengths=None if lengths is None else torch.tensor(lengths))
    first = tuple(start[part][None] for part in ("h", "c") if part in start)
    packed = (
        x if lengths is None else pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    )
    their_y, their_last = theirs(packed, first if len(first) == 2 else first[0])
    if lengths is not None:
        their_y, _ = pad_packed_sequence(their_y, batch_first=True)
    their_last = their_last if len(first) == 2 else (their_last,)
    wanted: Any = [x, ours.cell.weight_input, ours.cell.weight_hidden, ours.cell.bias]
    their_wanted = [x, *(getattr(theirs, f"{part}_l0") for part in TORCH_NAMES[:3])]
    if name == "gru":
        wanted.append(ours.cell.bias_new)
        their_wanted.append(theirs.bias_hh_l0)
    outputs = [y, *(last[part] for part in ("h", "c") if part in last)]
    theirs_out = [their_y, *(part[0] for part in their_last)]
    for a, b in zip(outputs, theirs_out, strict=True):
        close(a, b)
    found, expected = gradients(outputs, wanted), gradients(theirs_out, their_wanted)
    if name == "gru":
        expected[-1] = expected[-1][2 * H :]
    for a, b in zip(found, expected, strict=True):
        close(a, b)


def test_two_layers_equal_torch():
    """Layer l at time t sees h_(t-1) of its own and h_t of the layer below."""
    theirs = grown(nn.LSTM(D, H, num_layers=2, batch_first=True))
    ours = Stack([Block(Recurrent(LSTMCell(D, H))), Block(Recurrent(LSTMCell(H, H)))])
    block: Any
    for layer, block in enumerate(ours.blocks):
        fold(block.mixer.cell, theirs, layer)
    x = torch.randn(B, T, D, requires_grad=True)
    y, state, _ = ours(x)
    their_y, (h, c) = theirs(x)
    blocks: Any = ours.blocks
    cells = [block.mixer.cell for block in blocks]
    same(
        [y, *(state["blocks"][layer][part] for layer in (0, 1) for part in ("h", "c"))],
        [x, *(w for cell in cells for w in (cell.weight_input, cell.weight_hidden, cell.bias))],
        [their_y, h[0], c[0], h[1], c[1]],
        [x, *(getattr(theirs, f"{part}_l{layer}") for layer in (0, 1) for part in TORCH_NAMES[:3])],
    )


def sigmoid(a: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-a))


def test_gru_before_equals_the_published_equations():
    """E19: `h~ = tanh(W_xh x + W_hh (r * h) + b_h)`, the reset gate before the product (Cho et al. 2014)."""
    cell = grown(GRUCell(D, H, reset_after=False))
    W_xr, W_xz, W_xh = cell.weight_input.detach().view(3, H, D).numpy()
    W_hr, W_hz, W_hh = cell.weight_hidden.detach().view(3, H, H).numpy()
    b_r, b_z, b_h = cell.bias.detach().view(3, H).numpy()
    x = torch.randn(1, T, D)
    h = np.zeros(H)
    expected = []
    for x_t in x[0].numpy():
        r = sigmoid(W_xr @ x_t + W_hr @ h + b_r)
        z = sigmoid(W_xz @ x_t + W_hz @ h + b_z)
        new = np.tanh(W_xh @ x_t + W_hh @ (r * h) + b_h)
        h = z * h + (1 - z) * new
        expected.append(h)
    y, last = Recurrent(cell)(x)
    close(y[0], torch.tensor(np.array(expected)))
    close(last["h"][0], torch.tensor(h))
    after = GRUCell(D, H, reset_after=True)
    after.load_state_dict({**cell.state_dict(), "bias_new": torch.zeros(H)})
    assert (Recurrent(after)(x)[0] - y).abs().max() > 1e-3, "the two are not interchangeable"


def test_lstm_equals_the_equations():
    """E18: each gate by name; biases of its own would be one too many."""
    cell = grown(LSTMCell(D, H))
    W_i, W_f, W_g, W_o = cell.weight_input.detach().view(4, H, D).numpy()
    U_i, U_f, U_g, U_o = cell.weight_hidden.detach().view(4, H, H).numpy()
    b_i, b_f, b_g, b_o = cell.bias.detach().view(4, H).numpy()
    x = torch.randn(1, T, D)
    h = c = np.zeros(H)
    for x_t in x[0].numpy():
        i, f = sigmoid(W_i @ x_t + U_i @ h + b_i), sigmoid(W_f @ x_t + U_f @ h + b_f)
        o, g = sigmoid(W_o @ x_t + U_o @ h + b_o), np.tanh(W_g @ x_t + U_g @ h + b_g)
        c = f * c + i * g
        h = o * np.tanh(c)
    _, last = Recurrent(cell)(x)
    close(last["h"][0], torch.tensor(h))
    close(last["c"][0], torch.tensor(c))


@pytest.mark.parametrize(("ours", "theirs"), [(LayerNorm, nn.LayerNorm), (RMSNorm, nn.RMSNorm)])
def test_norms_equal_torch(ours, theirs):
    ours, theirs = ours(D, epsilon=1e-3), theirs(D, eps=1e-3)
    grown(ours)
    theirs.load_state_dict({{"gain": "weight"}.get(k, k): v for k, v in ours.state_dict().items()})
    x = (0.1 * torch.randn(B, T, D)).requires_grad_()
    same([ours(x)], [x, *ours.parameters()], [theirs(x)], [x, *theirs.parameters()])


def test_layer_norm_is_biased_and_of_each_vector():
    """E1, E2: variance over D, not D - 1, epsilon inside the root, statistics of each vector by itself."""
    norm = LayerNorm(4, epsilon=1e-5)
    x = torch.tensor([[1.0, 2.0, 3.0, 6.0], [5.0, 5.0, 5.0, 5.0], [1e4, 0.0, 0.0, 0.0]])
    close(norm(x)[0], torch.tensor([-2.0, -1.0, 0.0, 3.0]) / math.sqrt(14 / 4 + 1e-5))
    assert norm(x)[1].eq(0).all(), "a constant vector has no variance, and epsilon keeps it finite"


def test_rms_norm_is_over_the_width():
    """E10: the mean square is over D, not over the batch."""
    norm = RMSNorm(4, epsilon=0.5)
    x = torch.tensor([[1.0, 1.0, 1.0, 3.0], [100.0, 0.0, 0.0, 0.0]])
    close(norm(x)[0], x[0] / math.sqrt(0.5 + 12 / 4))
    close(norm(x)[:1], norm(x[:1]))


def test_swiglu_is_silu():
    """E11: `silu(a) = a * sigmoid(a)`; a bare sigmoid would be another layer (GLU)."""
    layer = grown(SwiGLU(D, 5))
    x = torch.randn(B, D)
    a, b = x @ layer.gate.weight.T, x @ layer.expand.weight.T
    close(layer(x), (a * a.sigmoid() * b) @ layer.contract.weight.T)


def share(ours: SelfAttention, theirs: nn.MultiheadAttention) -> None:
    parts = (ours.query, ours.key, ours.value)
    theirs.in_proj_weight.data = torch.cat([part.weight.detach() for part in parts])
    theirs.in_proj_bias.data = torch.cat([part.bias.detach() for part in parts])
    theirs.out_proj.load_state_dict(ours.output.state_dict())


def future(size: int) -> Tensor:
    """torch's mask says what is hidden."""
    return torch.ones(size, size, dtype=torch.bool).triu(1)


def test_attention_equals_torch():
    ours, theirs = grown(SelfAttention(H, 2)), nn.MultiheadAttention(H, 2, batch_first=True)
    share(ours, theirs)
    x = torch.randn(B, T, H, requires_grad=True)
    y, _ = ours(x)
    their_y, _ = theirs(x, x, x, attn_mask=future(T), need_weights=False)
    close(y, their_y)
    parts = [ours.query, ours.key, ours.value]
    found = gradients(
        [y], [x, *(p.weight for p in parts), *(p.bias for p in parts), *ours.output.parameters()]
    )
    expected = gradients(
        [their_y],
        [x, theirs.in_proj_weight, theirs.in_proj_bias, theirs.out_proj.weight, theirs.out_proj.bias],
    )
    close(found[0], expected[0])
    close(torch.cat(found[1:4]), expected[1])
    close(torch.cat(found[4:7]), expected[2])
    close(found[7], expected[3])
    close(found[8], expected[4])


def test_attention_normalises_over_the_keys_of_each_head():
    """E3, E4: softmax over the last axis, scores over sqrt of the head's width."""
    q, k = torch.randn(2, B, 2, T, 4)
    weights = attention_weights(q, k)
    close(weights.sum(-1), torch.ones(B, 2, T))
    scores = torch.einsum("bhtk,bhsk->bhts", q, k) / 2
    close(weights, scores.exp() / scores.exp().sum(-1, keepdim=True))


@pytest.mark.parametrize("place", ["pre", "post"])
def test_block_equals_torch(place):
    theirs = nn.TransformerEncoderLayer(
        H, 2, 4 * H, dropout=0.0, activation=F.gelu, batch_first=True, norm_first=place == "pre"
    )
    ours: Any = grown(Block(SelfAttention(H, 2), MLP(H, 4 * H), "layer", place, residual=True))
    share(ours.mixer, theirs.self_attn)
    mine: Any
    for mine, other in (
        (ours.feedforward.expand, theirs.linear1),
        (ours.feedforward.contract, theirs.linear2),
        (ours.mixer_norm, theirs.norm1),
        (ours.feedforward_norm, theirs.norm2),
    ):
        other.weight.data = (mine.gain if isinstance(mine, LayerNorm) else mine.weight).detach()
        other.bias.data = mine.bias.detach()
    x = torch.randn(B, T, H, requires_grad=True)
    same(
        [ours(x)[0]],
        [
            x,
            ours.feedforward.expand.weight,
            ours.mixer_norm.gain,
            ours.feedforward_norm.bias,
            ours.mixer.output.weight,
        ],
        [theirs(x, src_mask=future(T))],
        [x, theirs.linear1.weight, theirs.norm1.weight, theirs.norm2.bias, theirs.self_attn.out_proj.weight],
    )


def test_rotary_is_a_complex_product():
    """Pair i as the complex number `x_i + i x_(i+K/2)`, times `exp(i t / 10000^(2i/K))`."""
    K = 8
    x, positions = torch.randn(B, T, 2, K), torch.randint(0, 5000, (B, T))
    theta = torch.tensor([10000.0 ** (-2 * i / K) for i in range(K // 2)])
    turned = torch.complex(x[..., : K // 2], x[..., K // 2 :]) * torch.polar(
        torch.ones(()), positions[:, :, None, None] * theta
    )
    close(apply_rotary(x, positions), torch.cat([turned.real, turned.imag], -1))
    assert torch.equal(apply_rotary(x, torch.zeros(1, T, dtype=torch.long)), x)


def test_rotary_products_depend_on_the_distance_alone():
    q, k = torch.randn(2, 1, 1, 1, 8)
    product = lambda m, n: (apply_rotary(q, torch.tensor([[m]])) * apply_rotary(k, torch.tensor([[n]]))).sum()  # noqa: E731
    close(product(5, 2), product(1005, 1002))
    close(product(0, 3), product(70, 73))
    assert (product(5, 2) - product(2, 5)).abs() > 1e-3, "and on its sign"


def test_sinusoids():
    """E9: exponents 2i/D with i from 0, so the first frequency is 1; sine and cosine of each side by side."""
    width, size = 10, 3000
    table = SinusoidalPosition(width)(torch.tensor([0]), size)[0]
    for t in (0, 1, 17, size - 1):
        for i in range(width // 2):
            angle = t / 10000 ** (2 * i / width)
            close(table[t, 2 * i : 2 * i + 2], torch.tensor([math.sin(angle), math.cos(angle)]))
    close(table[:, 0], torch.arange(size).sin())
    assert table.abs().max() <= 1, "bounded"
    assert torch.cdist(table, table).fill_diagonal_(1.0).min() > 1e-3, "unique"
    steps = (table[1:] - table[:-1]).norm(dim=1)
    close(steps, steps[:1].expand_as(steps))


def test_positions_go_on_from_each_rows_count():
    """E9: added by default, concatenated when asked for; a row's first position is its own."""
    x, first = torch.randn(2, 3, 4), torch.tensor([0, 5])
    for position in (SinusoidalPosition(4), LearnedPosition(8, 4)):
        table = position(torch.tensor([0]), 8)[0]
        vectors = torch.stack([table[0:3], table[5:8]])
        close(AddPositions(position, "add")(x, first), x + vectors)
        close(AddPositions(position, "concatenate")(x, first), torch.cat([x, vectors], 2))
