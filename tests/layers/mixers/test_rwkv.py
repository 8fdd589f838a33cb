"""RWKV: the fast path equals the step loop, the loop equals the sum, the model equals Hugging Face's."""

import math
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from foveal.config import ConfigError
from foveal.core.runtime import autocast
from foveal.heads.decoder_lm import DecoderLM
from foveal.layers.mixers.recurrent import Recurrent
from foveal.layers.mixers.recurrent_cells import LSTMCell
from foveal.layers.mixers.recurrent_mixers import LSTM
from foveal.layers.mixers.rwkv import ChannelMixing, TimeMixing
from foveal.models.decoder import language_model
from foveal.ops.jit.dispatch import record_paths, reference_only
from foveal.ops.padding import zero_padding
from foveal.ops.recurrent import rwkv
from foveal.ops.recurrent.rwkv import EMPTY_EXPONENT, WKVState, wkv, wkv_reference
from foveal.tasks.config import load_config

B, D, V = 4, 6, 11


def inputs(T: int, size: float, dtype: torch.dtype = torch.float64) -> tuple[list[Tensor], WKVState]:
    """k, v, w, u, and a state in which two rows have seen nothing."""
    torch.manual_seed(T)
    k, v = torch.randn(2, B, T, D, dtype=dtype)
    w, u = -torch.randn(D, dtype=dtype).exp(), torch.randn(D, dtype=dtype)
    seen = torch.tensor([0.0, 1.0, 1.0, 0.0], dtype=dtype)[:, None]
    numerator, denominator = seen * torch.randn(B, D, dtype=dtype), seen * (1 + torch.rand(B, D, dtype=dtype))
    exponent = torch.where(seen.bool(), size * torch.randn(B, D, dtype=dtype), EMPTY_EXPONENT)
    return [size * k, v, w, u], (numerator, denominator, exponent)


def run(
    path, arguments: list[Tensor], state: tuple[Tensor, ...], lengths: Tensor | None
) -> dict[str, Tensor]:
    """Outputs, state and the gradients of a random functional of both to everything that has one."""
    leaves = [part.clone().requires_grad_() for part in (*arguments, *state[:2])]
    y, after = path(*leaves[:4], (leaves[4], leaves[5], state[2]), lengths)
    y = zero_padding(y, lengths)
    torch.manual_seed(1)
    weights = (torch.randn(part.shape, dtype=torch.float64).to(part.dtype) for part in (y, *after[:2]))
    loss = torch.stack([(a * b).sum() for a, b in zip((y, *after[:2]), weights, strict=True)]).sum()
    assert not after[2].requires_grad
    names = ("dk", "dv", "dw", "du", "d_numerator", "d_denominator")
    gradients = torch.autograd.grad(loss, leaves)
    return dict(
        zip(("y", "numerator", "denominator", "exponent", *names), (y, *after, *gradients), strict=True)
    )


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("size", [1.0, 100.0])
@pytest.mark.parametrize("T", [2, 31, 63, 64, 65, 300])
def test_fast_path_equals_the_loop(T, size, ragged):
    """In outputs, final state and all gradients, from any state, at every split into chunks."""
    arguments, state = inputs(T, size)
    lengths = torch.tensor([T, T // 2, 1, 0]) if ragged else None
    with record_paths() as ran:
        found = run(wkv, arguments, state, lengths)
    assert ran == ["wkv:scan"]
    for name, value in run(wkv_reference, arguments, state, lengths).items():
        torch.testing.assert_close(
            found[name], value, rtol=1e-9, atol=1e-9, msg=partial("{}: {}".format, name)
        )


def test_several_levels_of_chunks():
    """Chunks of chunks, and a sequence in pieces, change nothing."""
    arguments, state = inputs(150, 10.0)
    lengths = torch.tensor([150, 77, 32, 0])
    expected = run(wkv_reference, arguments, state, lengths)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rwkv, "SCAN_CHUNK", 3)
        for cached in (1, 40 * B * D, 1 << 17):
            patch.setattr(rwkv, "CACHED_NUMBERS", cached)
            for name, value in run(wkv, arguments, state, lengths).items():
                torch.testing.assert_close(value, expected[name], rtol=1e-9, atol=1e-9)


def test_single_precision_is_near_double():
    arguments, state = inputs(3000, 3.0)
    exact = run(wkv_reference, arguments, state, None)
    single = run(wkv, [part.float() for part in arguments], tuple(part.float() for part in state), None)
    for name, value in single.items():
        assert (value - exact[name]).norm() <= 1e-5 * exact[name].norm(), name


def test_loop_equals_the_sum():
    """Peng et al. 2023, eq. 16, as it is written."""
    (k, v, w, u), _ = inputs(9, 1.0)
    nothing = torch.zeros(B, D, dtype=k.dtype)
    y, _ = wkv_reference(k, v, w, u, (nothing, nothing, nothing + EMPTY_EXPONENT))
    for t in range(9):
        weights = [(-(t - 1 - i) * -w + k[:, i]).exp() for i in range(t)] + [(u + k[:, t]).exp()]
        expected = sum(weight * v[:, i] for i, weight in enumerate(weights)) / sum(weights)
        torch.testing.assert_close(y[:, t], expected)


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("size", [1.0, 100.0])
@pytest.mark.parametrize("T", [1, 2, 64, 65, 300])
@pytest.mark.parametrize("threads", [1, 3])
def test_the_kernel_equals_the_loop(T, size, ragged, threads):
    """In float32, against the loop in float64; rounding an exponent costs what the exponent is large."""
    torch.set_num_threads(threads)
    arguments, state = inputs(T, size)
    lengths = torch.tensor([T, T // 2, 1, 0]) if ragged else None
    with record_paths() as ran:
        found = run(wkv, [part.float() for part in arguments], tuple(part.float() for part in state), lengths)
    torch.set_num_threads(1)
    assert ran == ["wkv:kernel"]
    for name, value in run(wkv_reference, arguments, state, lengths).items():
        assert (found[name] - value).norm() <= 3e-5 * size * value.norm(), name


def test_first_weights():
    """Those of RWKV-v4's code: layer 1 of 3."""
    size, layer, layers = 12, 1, 3
    time, channel = TimeMixing(size, layer, layers), ChannelMixing(size, 4 * size, layer, layers)
    for linear in (time.receptance, time.key, time.output, channel.receptance, channel.value):
        assert linear.weight.eq(0).all()
    eye = torch.eye(size)
    torch.testing.assert_close(time.value.weight @ time.value.weight.T, eye)
    torch.testing.assert_close(channel.key.weight.T @ channel.key.weight, 4 * eye)
    for i in range(size):
        mix = (i / size) ** (2 / 3)
        expected = {
            "decay": -5 + 8 * (i / (size - 1)) ** (0.7 + 1.3 * 0.5),
            "bonus": math.log(0.3) + (-0.5, 0.0, 0.5)[(i + 1) % 3],
            "mix_key": mix,
            "mix_value": mix + 0.3 * 0.5,
            "mix_receptance": math.sqrt(mix),
        }
        for name, value in expected.items():
            assert getattr(time, name)[i].item() == pytest.approx(value, abs=1e-6), name
        assert channel.mix_key[i].item() == pytest.approx(mix, abs=1e-6)
        assert channel.mix_receptance[i].item() == pytest.approx(mix, abs=1e-6)


@pytest.mark.parametrize("mixer", [TimeMixing(D), ChannelMixing(D, D)])
def test_a_state_keeps_its_precision_under_autocast(mixer):
    with autocast(torch.device("cpu"), "bfloat16"):
        y, state = mixer(torch.randn(2, 5, D), lengths=torch.tensor([5, 0]))
        y, state = mixer(torch.randn(2, 5, D, dtype=torch.bfloat16), state)
    assert all(part.dtype == torch.float32 for part in state.values())
    assert y.isfinite().all()


@pytest.mark.parametrize("mixer", [TimeMixing(D), ChannelMixing(D, D)])
def test_another_state_is_refused(mixer):
    x = torch.zeros(2, 3, D)
    for state in (Recurrent(LSTMCell(D, D)).init_state(2), mixer.init_state(3), mixer.double().init_state(2)):
        mixer.float()
        with pytest.raises(ValueError, match="needed: "):
            mixer(x, state)


def model(*overrides: str) -> DecoderLM:
    given = ("model.width=16", "model.expansion=3", *overrides)
    return language_model(load_config("rwkv", given).model, V, 32)


def test_channel_mixing_serves_any_mixer():
    """It has a block, and so a norm and a residual, of its own."""
    made: Any = model("model.mixers=rwkv,lstm", "model.layers=2")
    kinds = [type(block.mixer) for block in made.stack.blocks]
    assert kinds == [TimeMixing, ChannelMixing, LSTM, ChannelMixing]
    assert [block.mixer.layer for block in made.stack.blocks[1::2]] == [0, 1]
    assert made.stack.blocks[1].mixer.key.weight.shape == (48, 16)
    assert made.bounded


def test_embedding_norm():
    made = model()
    seen = made.embedding_norm(made.embedding(torch.arange(V)[None]))
    torch.testing.assert_close(seen.mean(-1), torch.zeros(1, V), rtol=0, atol=1e-5)
    assert made.projection.bias is None
    with pytest.raises(ConfigError, match=r"model.embedding_norm is not read, since model.norm=none"):
        model("model.norm=none", "model.embedding_norm=true")


def from_hugging_face(theirs: dict[str, Tensor], layers: int) -> dict[str, Tensor]:
    """The weights of RwkvForCausalLM (as trained: `rescale_every` not applied) under our names."""
    norm = {"gain": "weight", "bias": "bias"}
    shares = {"mix_receptance": "time_mix_receptance", "mix_key": "time_mix_key"}
    names = {"embedding.table": "rwkv.embeddings.weight", "projection.weight": "head.weight"}
    for part, name in norm.items():
        names[f"embedding_norm.{part}"] = f"rwkv.blocks.0.pre_ln.{name}"
        names[f"norm.{part}"] = f"rwkv.ln_out.{name}"
    for layer in range(layers):
        time = {"mix_value": "time_mix_value", "decay": "time_decay", "bonus": "time_first", **shares}
        time |= {f"{part}.weight": f"{part}.weight" for part in ("receptance", "key", "value", "output")}
        channel = shares | {f"{part}.weight": f"{part}.weight" for part in ("receptance", "key", "value")}
        for place, mixer, module, before in (
            (2 * layer, time, "attention", "ln1"),
            (2 * layer + 1, channel, "feed_forward", "ln2"),
        ):
            ours, their = f"stack.blocks.{place}", f"rwkv.blocks.{layer}"
            names |= {f"{ours}.mixer.{part}": f"{their}.{module}.{name}" for part, name in mixer.items()}
            names |= {f"{ours}.mixer_norm.{part}": f"{their}.{before}.{name}" for part, name in norm.items()}
    assert sorted(names.values()) == sorted(theirs)
    return {ours: theirs[name].squeeze() for ours, name in names.items()}


@pytest.mark.parametrize("path", ["reference", "default"])
def test_equals_hugging_face(path):
    """Logits, whole and chunk by chunk with the state carried, and the state itself."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    layers, lengths = 3, [1, 20, 1, 18]
    shape = {"vocab_size": V, "hidden_size": 16, "num_hidden_layers": layers, "intermediate_size": 48}
    config = transformers.RwkvConfig(**shape, rescale_every=0)
    theirs = transformers.RwkvForCausalLM(config).eval()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    ours = model(f"model.layers={layers}").eval()
    ours.load_state_dict(from_hugging_face(theirs.state_dict(), layers))
    tokens = torch.randint(V, (3, sum(lengths)))
    close = lambda a, b: torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)  # noqa: E731
    with torch.no_grad(), reference_only() if path == "reference" else torch.no_grad():
        whole = theirs(tokens).logits
        assert whole.std() > 0.3
        features, _, _ = ours(tokens)
        close(ours.project(features), whole)
        # One row: theirs, given one token and a state, mixes the rows of a batch with each other.
        state: Any = None
        their_state: Any = None
        for part, expected in zip(tokens[:1].split(lengths, 1), whole[:1].split(lengths, 1), strict=True):
            features, state, _ = ours(part, state)
            found = theirs(part, state=their_state, use_cache=True)
            their_state = found.state
            close(ours.project(features), found.logits)
            close(ours.project(features), expected)
    for layer in range(layers):
        time, channel = state["blocks"][2 * layer], state["blocks"][2 * layer + 1]
        mine = [channel["last"], *(time[name] for name in ("last", "numerator", "denominator", "exponent"))]
        for a, b in zip(mine, their_state, strict=True):
            close(a, b[:, :, layer])


def test_gradients_equal_hugging_face():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    layers = 2
    shape = {"vocab_size": V, "hidden_size": 16, "num_hidden_layers": layers, "intermediate_size": 48}
    theirs = transformers.RwkvForCausalLM(transformers.RwkvConfig(**shape, rescale_every=0))
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    ours = model(f"model.layers={layers}")
    ours.load_state_dict(from_hugging_face(theirs.state_dict(), layers))
    tokens = torch.randint(V, (3, 30))
    ours.project(ours(tokens)[0]).log_softmax(-1)[..., 0].mean().backward()
    theirs(tokens).logits.log_softmax(-1)[..., 0].mean().backward()
    expected = from_hugging_face({name: p.grad for name, p in theirs.named_parameters()}, layers)
    for name, parameter in ours.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[name], rtol=1e-4, atol=1e-6)
