"""Options of heads and blocks: shared keys, norms, widths, bases, windows in some layers; written out."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from foveal.config import ConfigError
from foveal.distributed.tensor_group import TensorGroup
from foveal.layers.blocks.feedforward import GeGLU
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.embedding import Embedding
from foveal.layers.mixers.multi_head_attention import HeadOptions
from foveal.layers.mixers.self_attention import SelfAttention
from foveal.models.decoder import language_model
from foveal.tasks.config import load_config

D, H, G, K, T = 6, 4, 2, 10, 9
OPTIONS = HeadOptions(key_heads=G, head_width=K, qk_norm=True, bias=False, rotary_base=50.0, epsilon=1e-3)


def grown(module: nn.Module) -> Any:
    torch.manual_seed(0)
    for parameter in module.parameters():
        nn.init.uniform_(parameter, -0.9, 0.9)
    return module.double().eval()


def rms(x: Tensor, gain: Tensor) -> Tensor:
    return x / (x.square().mean(-1, keepdim=True) + 1e-3).sqrt() * gain


def rotated(x: Tensor, t: int) -> Tensor:
    angles = torch.tensor([t / 50.0 ** (2 * i / K) for i in range(K // 2)], dtype=torch.float64)
    a, b = x.chunk(2, -1)
    return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1)


@pytest.mark.parametrize("window", [0, 3])
def test_shared_keys_and_norms_are_the_equations(window: int) -> None:
    mixer = grown(SelfAttention(D, H, window, rotary=True, options=OPTIONS))
    x = torch.randn(1, T, D, dtype=torch.float64)
    q, k, v = (getattr(mixer, name).weight for name in ("query", "key", "value"))
    y = torch.zeros(T, H * K, dtype=torch.float64)
    for h in range(H):
        g = h * G // H
        queries, keys, values = (
            x[0] @ weight[part * K : (part + 1) * K].T for weight, part in ((q, h), (k, g), (v, g))
        )
        for t in range(T):
            visible = range(max(0, t - window + 1) if window else 0, t + 1)
            query = rotated(rms(queries[t], mixer.query_norm.gain), t)
            scores = [query @ rotated(rms(keys[s], mixer.key_norm.gain), s) / math.sqrt(K) for s in visible]
            weights = torch.stack(scores).softmax(0)
            y[t, h * K : (h + 1) * K] = weights @ values[visible.start : visible.stop]
    torch.testing.assert_close(mixer(x)[0][0], y @ mixer.output.weight.T)


def test_as_many_heads_of_keys_are_plain_heads() -> None:
    plain, named = SelfAttention(8, 4), SelfAttention(8, 4, options=HeadOptions(key_heads=4, head_width=2))
    named.load_state_dict(plain.state_dict())
    x = torch.randn(2, 5, 8)
    assert torch.equal(plain(x)[0], named(x)[0])


def test_the_state_has_the_shared_keys_alone() -> None:
    mixer = SelfAttention(D, H, options=OPTIONS)
    state = mixer.init_state(3, capacity=7)
    assert state["keys"].shape == state["values"].shape == (3, 7, G, K)


def test_both_norms_are_the_equation() -> None:
    block = grown(
        Block(SelfAttention(D, 2), GeGLU(D, 8), "rms", norm_placement="both", residual=True, epsilon=1e-3)
    )
    x = torch.randn(2, T, D, dtype=torch.float64)
    norms = [rms_of(block.get_submodule(name)) for name in ("mixer_norm", "mixer_output_norm")]
    norms += [rms_of(block.get_submodule(name)) for name in ("feedforward_norm", "feedforward_output_norm")]
    middle = x + norms[1](block.mixer(norms[0](x))[0])
    torch.testing.assert_close(block(x)[0], middle + norms[3](block.feedforward(norms[2](middle))))


def rms_of(norm: nn.Module) -> Callable[[Tensor], Tensor]:
    return lambda x: rms(x, norm.get_parameter("gain"))


def test_geglu_is_the_equation() -> None:
    layer = grown(GeGLU(D, 5))
    x = torch.randn(3, D, dtype=torch.float64)
    gate = x @ layer.gate.weight.T
    gelu = gate / 2 * (1 + (math.sqrt(2 / math.pi) * (gate + 0.044715 * gate**3)).tanh())
    expected = (gelu * (x @ layer.expand.weight.T)) @ layer.contract.weight.T
    torch.testing.assert_close(layer(x), expected)


def test_the_embedding_is_scaled_and_the_tied_projection_is_not() -> None:
    settings = ["model.embedding_scale=true", "model.width=16", "model.tie_embeddings=true"]
    model = language_model(load_config("attention", settings).model, 11, 8)
    assert isinstance(model.embedding, Embedding)
    tokens = torch.tensor([[3, 7]])
    torch.testing.assert_close(model.embedding(tokens), 4 * model.embedding.table[tokens])
    assert model.projection.weight is model.embedding.table


def test_every_third_layer_has_no_window_and_another_base() -> None:
    settings = ["model.layers=7", "model.attention.window=5", "model.positions.kind=rotary"]
    settings += ["model.attention.global_every=3", "model.attention.global_rotary_base=7.0"]
    model: Any = language_model(load_config("attention", settings).model, 11, 8)
    mixers = [block.mixer for block in model.stack.blocks]
    assert [mixer.window for mixer in mixers] == [5, 5, 0, 5, 5, 0, 5]
    assert [mixer.options.rotary_base for mixer in mixers] == [1e4, 1e4, 7, 1e4, 1e4, 7, 1e4]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["model.attention.key_heads=3"], "heads=4 is not a multiple of model.attention.key_heads=3"),
        (["model.attention.head_width=3", "model.positions.kind=rotary"], "even head width, not 3"),
        (["model.attention.global_every=3"], "global_every is not read, since model.attention.window=0"),
        (["model.positions.kind=learned", "model.positions.rotary_base=3"], "rotary_base is not read"),
        (["model.positions.rotary_base=0"], "model.positions.rotary_base"),
    ],
)
def test_settings_that_do_not_fit(settings: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        load_config("attention", ["model.attention.heads=4", *settings])
    assert message in str(error.value)


def test_heads_that_can_not_be_split() -> None:
    with pytest.raises(ValueError, match="1 heads of keys can't be split among 2 ranks"):
        SelfAttention(8, 4, options=HeadOptions(key_heads=1)).split_among(TensorGroup(0, 2))
    with pytest.raises(ValueError, match="norms of queries and keys can't be split"):
        SelfAttention(8, 4, options=HeadOptions(qk_norm=True)).split_among(TensorGroup(0, 2))
