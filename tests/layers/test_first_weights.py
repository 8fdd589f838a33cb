"""The first weights are what the docstrings say, and a model's first loss is near ln V."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import softplus

from foveal.core.errors import UserError
from foveal.core.runtime import autocast
from foveal.heads.decoder_lm import DecoderLM
from foveal.layers.blocks.feedforward import MLP, SwiGLU, make_feedforward
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.blocks.stack import Stack
from foveal.layers.embedding import Embedding
from foveal.layers.mixers.causal_conv1d import CausalConv1d
from foveal.layers.mixers.mamba import Mamba
from foveal.layers.mixers.recurrent import Recurrent
from foveal.layers.mixers.recurrent_cells import ElmanCell, GRUCell, LSTMCell
from foveal.layers.mixers.self_attention import SelfAttention
from foveal.layers.norm import LayerNorm, RMSNorm
from foveal.layers.position import AddPositions, LearnedPosition
from foveal.ops.recurrent import cells

D, H = 40, 64


def is_uniform(weight: Tensor, bound: float) -> bool:
    weight, deviation = weight.detach(), bound / math.sqrt(3)
    return float(weight.abs().max()) <= bound and abs(float(weight.std()) / deviation - 1) < 0.1


def is_normal(weight: Tensor, deviation: float) -> bool:
    weight = weight.detach()
    return abs(float(weight.std()) / deviation - 1) < 0.1 and float(weight.abs().max()) > 2.5 * deviation


@pytest.mark.parametrize(
    "cell", [ElmanCell(D, H), LSTMCell(D, H), GRUCell(D, H), GRUCell(D, H, reset_after=False)]
)
def test_recurrent_weights_are_uniform(cell):
    for weight in (cell.weight_input, cell.weight_hidden):
        assert is_uniform(weight, 1 / math.sqrt(H))


def test_biases():
    assert ElmanCell(D, H).bias.eq(0).all()
    assert GRUCell(D, H).bias.eq(0).all()
    bias_new = GRUCell(D, H).bias_new
    assert bias_new is not None
    assert bias_new.eq(0).all()
    i, f, g, o = LSTMCell(D, H).bias.view(4, H)
    assert f.eq(1).all(), "the forget gate starts open"
    assert all(bias.eq(0).all() for bias in (i, g, o))


def test_convolution():
    mixer = CausalConv1d(D, H, 3)
    assert is_uniform(mixer.weight, 1 / math.sqrt(3 * D))
    assert mixer.bias.eq(0).all()


def test_relu_starts_from_the_identity():
    assert torch.equal(ElmanCell(D, H, "relu").weight_hidden, torch.eye(H))
    assert is_uniform(ElmanCell(D, H, "relu").weight_input, 1 / math.sqrt(H))


def test_learned_start_is_zero():
    assert all(start.eq(0).all() for start in Recurrent(LSTMCell(D, H), learned_start=True).start.values())


def test_linear_layers_and_tables():
    attention, mlp, swiglu = SelfAttention(H, 4), MLP(H, 4 * H), SwiGLU(H, 4 * H)
    linears = [attention.query, attention.key, attention.value, attention.output, mlp.expand, mlp.contract]
    for linear in (*linears, swiglu.gate, swiglu.expand, swiglu.contract):
        assert is_normal(linear.weight, 0.02)
    assert all(linear.bias.eq(0).all() for linear in linears)
    assert swiglu.gate.bias is None
    assert is_normal(LearnedPosition(H, D).table, 0.02)
    assert is_normal(Embedding(H, D).table, 1.0)


def test_mamba():
    """A = -(1 .. N), steps log-uniform between 0.001 and 0.1, as the authors begin."""
    mamba = Mamba(H, expansion=4, states=6)
    for matrix in (mamba.input, mamba.selection, mamba.delta, mamba.output):
        assert is_uniform(matrix.weight, 1 / math.sqrt(matrix.in_features))
    assert mamba.rank == H // 16
    assert is_uniform(mamba.convolution_weight, 1 / 2)
    assert mamba.convolution_bias.eq(0).all()
    assert mamba.skip.eq(1).all()
    torch.testing.assert_close(mamba.A_log.exp(), torch.arange(1.0, 7).expand(4 * H, 6))
    delta = softplus(mamba.delta.bias.detach()).log10()
    assert -3.001 < float(delta.min()) < -2.9
    assert -1.1 < float(delta.max()) < -0.999
    assert abs(float(delta.mean()) + 2) < 0.1


def test_norms():
    assert LayerNorm(D).gain.eq(1).all()
    assert LayerNorm(D).bias.eq(0).all()
    assert RMSNorm(D).gain.eq(1).all()


def test_feedforward_layers_have_as_many_weights():
    """SwiGLU with hidden 8D/3 against an MLP with 4D: 8 D^2 each."""
    layers: list[Any] = [make_feedforward("mlp", 96, 4.0), make_feedforward("swiglu", 96, 4.0)]
    sizes = [sum(p.numel() for p in layer.parameters()) for layer in layers]
    assert sizes[1] == 8 * 96**2
    assert sizes[0] == sizes[1] + 5 * 96
    assert make_feedforward("none", 96, 4.0) is None


@pytest.mark.parametrize("tied", [False, True])
def test_first_loss_is_near_ln_v(tied):
    V = 50
    model = DecoderLM(Embedding(V, D), Stack([Block(Recurrent(LSTMCell(D, D)))]), D, tied=tied)
    assert is_normal(model.projection.weight, 0.02)
    assert model.projection.bias.eq(0).all()
    assert (model.projection.weight is model.embedding.table) == tied
    features, _, _ = model(torch.randint(V, (4, 20)))
    losses = -model.project(features).log_softmax(-1)
    assert abs(float(losses.mean().detach()) - math.log(V)) < 0.02


def test_a_norm_stands_before_the_projection():
    stack = Stack([Block(Recurrent(LSTMCell(D, D)))])
    features, _, _ = DecoderLM(Embedding(9, D), stack, D, LayerNorm(D))(torch.randint(9, (4, 20)))
    torch.testing.assert_close(features.mean(-1), torch.zeros(4, 20), rtol=0, atol=1e-5)
    torch.testing.assert_close(features.var(-1, correction=0), torch.ones(4, 20), rtol=0, atol=1e-2)


def test_dropout_is_of_training_alone():
    block = Block(Recurrent(ElmanCell(D, D)), MLP(D, D), residual=True, dropout=0.5)
    x = torch.randn(2, 5, D)
    with torch.no_grad():
        assert not torch.equal(block(x)[0], block(x)[0])
        block.eval()
        assert torch.equal(block(x)[0], block(x)[0])
        mixer: Any = block.mixer
        bare = Block(mixer, block.feedforward, residual=True)
        assert torch.equal(bare(x)[0], block(x)[0]), "no scaling at test time"


def test_learned_positions_refuse_to_go_past_their_end():
    stack = Stack([Block(Recurrent(ElmanCell(D, D)))], AddPositions(LearnedPosition(6, D), "add"))
    assert not stack.bounded
    _, state, _ = stack(torch.randn(2, 4, D))
    _, state, _ = stack(torch.randn(2, 2, D), state)
    with pytest.raises(UserError, match="learned positions end at 6, but 7 are needed"):
        stack(torch.randn(2, 1, D), state)


def test_bounded():
    """What can be carried on for ever: recurrent mixers, and attention with a window."""
    block = lambda mixer: Block(mixer, residual=True)  # noqa: E731
    recurrent, window, full = Recurrent(LSTMCell(D, D)), SelfAttention(D, 2, window=4), SelfAttention(D, 2)
    assert Stack([block(recurrent), block(window)]).bounded
    assert not Stack([block(recurrent), block(full)]).bounded


@pytest.mark.parametrize(
    "cell", [ElmanCell(D, H), LSTMCell(D, H), GRUCell(D, H), GRUCell(D, H, reset_after=False)]
)
def test_a_state_keeps_its_precision_under_autocast(cell):
    mixer = Recurrent(cell)
    with autocast(torch.device("cpu"), "bfloat16"):
        y, state = mixer(torch.randn(2, 5, D), lengths=torch.tensor([5, 0]))
        y, state = mixer(torch.randn(2, 5, D), state)
    assert all(part.dtype == torch.float32 for part in state.values())
    assert y.isfinite().all()


def test_an_lstm_in_bfloat16_where_the_processor_has_no_kernel_for_it(monkeypatch):
    """It computes in float32, and gives what it is asked for."""
    monkeypatch.setattr(cells, "has_bfloat16_lstm", lambda: False)
    mixer, x, lengths = Recurrent(LSTMCell(D, H)), torch.randn(2, 5, D), torch.tensor([5, 3])
    exact, after = mixer(x, lengths=lengths)
    with autocast(torch.device("cpu"), "bfloat16"):
        y, state = mixer(x, lengths=lengths)
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y.float(), exact, rtol=0, atol=2**-8)
    torch.testing.assert_close(state, after, rtol=0, atol=2**-7)
    y.sum().backward()
    assert all(weight.grad is not None for weight in mixer.parameters())
    whole, _ = mixer.bfloat16()(x.bfloat16())
    assert whole.dtype == torch.bfloat16


def test_widths_that_do_not_fit():
    with pytest.raises(ValueError, match="not a multiple"):
        SelfAttention(10, 4)
    with pytest.raises(ValueError, match="equal widths"):
        Block(Recurrent(ElmanCell(D, H)), residual=True)
