"""Mamba equals Hugging Face's on the same weights, whole and in pieces."""

from typing import Any

import pytest
import torch
from torch import Tensor

from foveal.core.runtime import autocast
from foveal.heads.decoder_lm import DecoderLM
from foveal.layers.mixers.mamba import Mamba
from foveal.models.decoder import language_model
from foveal.ops.jit.dispatch import reference_only
from foveal.tasks.config import load_config
from tests.support.gradients import gradient_of

V, D, LAYERS, N, K = 17, 24, 3, 5, 4

# Hugging Face's names: of the model, and within each of its `backbone.layers.<i>`.
MODEL = {"backbone.embeddings.weight": "embedding.table", "backbone.norm_f.weight": "norm.gain"}
LAYER = {
    "norm.weight": "mixer_norm.gain",
    "mixer.in_proj.weight": "mixer.input.weight",
    "mixer.conv1d.weight": "mixer.convolution_weight",  # (E, 1, K) there
    "mixer.conv1d.bias": "mixer.convolution_bias",
    "mixer.x_proj.weight": "mixer.selection.weight",
    "mixer.dt_proj.weight": "mixer.delta.weight",
    "mixer.dt_proj.bias": "mixer.delta.bias",
    "mixer.A_log": "mixer.A_log",
    "mixer.D": "mixer.skip",
    "mixer.out_proj.weight": "mixer.output.weight",
}


def ours(name: str) -> str:
    """Our name of Hugging Face's `name`."""
    if name in MODEL:
        return MODEL[name]
    layer, _, rest = name.removeprefix("backbone.layers.").partition(".")
    return f"stack.blocks.{layer}.{LAYER[rest]}"


def peer_and_ours() -> tuple[Any, DecoderLM]:
    """A small random model of Hugging Face's, and ours of the same weights."""
    transformers = pytest.importorskip("transformers")
    config = transformers.MambaConfig(
        vocab_size=V, hidden_size=D, state_size=N, num_hidden_layers=LAYERS, conv_kernel=K, use_cache=True
    )
    peer = transformers.MambaForCausalLM(config).eval()
    for parameter in peer.parameters():
        torch.nn.init.uniform_(parameter, -0.6, 0.6)
    settings = [f"width={D}", f"layers={LAYERS}", f"mamba.state_size={N}", f"mamba.conv_kernel={K}"]
    made = load_config("mamba", [f"model.{setting}" for setting in settings])
    model = language_model(made.model, V, context=64).eval()
    weights = {ours(name): value for name, value in peer.named_parameters()}
    shapes = {name: value.shape for name, value in model.named_parameters()}
    assert weights.keys() == shapes.keys()
    model.load_state_dict({name: weights[name].view(shape) for name, shape in shapes.items()}, strict=False)
    return peer, model


def logits(model: DecoderLM, tokens: Tensor, state: object = None) -> tuple[Tensor, object]:
    features, state, _ = model(tokens, state)
    return model.project(features), state


@pytest.mark.parametrize("cuts", [[], [1], [20, 21, 50], list(range(1, 70))], ids=len)
def test_logits_equal_hugging_faces(cuts):
    peer, model = peer_and_ours()
    tokens = torch.randint(V, (2, 70))
    with torch.no_grad():
        expected = peer(tokens).logits
        state, parts = None, []
        for part in tokens.tensor_split(cuts, 1):
            y, state = logits(model, part, state)
            parts.append(y)
    assert expected.std() > 0.5
    torch.testing.assert_close(torch.cat(parts, 1), expected, rtol=1e-5, atol=1e-5)


def test_gradients_equal_hugging_faces():
    peer, model = peer_and_ours()
    tokens = torch.randint(V, (2, 70))
    peer(tokens).logits.log_softmax(-1)[..., 0].sum().backward()
    logits(model, tokens)[0].log_softmax(-1)[..., 0].sum().backward()
    found = dict(model.named_parameters())
    for name, parameter in peer.named_parameters():
        gradient, scale = gradient_of(found[ours(name)]), float(parameter.grad.abs().max())
        assert scale > 0
        torch.testing.assert_close(
            gradient.view_as(parameter), gradient_of(parameter), rtol=1e-4, atol=2e-5 * scale
        )


def test_the_state_is_kept_bit_for_bit_by_padding():
    mixer = Mamba(8)
    _, state = mixer(torch.randn(2, 6, 8))
    for path in (reference_only, torch.no_grad):
        with path():
            _, after = mixer(torch.randn(2, 70, 8), state, lengths=torch.tensor([0, 3]))
        assert torch.equal(after["inputs"][0], state["inputs"][0])
        assert torch.equal(after["h"][0], state["h"][0])
        assert not torch.equal(after["h"][1], state["h"][1])


def test_the_scan_runs_in_float32_under_autocast():
    """A step in bfloat16 would round away 0.001 beside 1: the state keeps float32, outputs come close."""
    mixer = Mamba(32)
    x = torch.randn(2, 300, 32)
    y, state = mixer(x)
    with autocast(torch.device("cpu"), "bfloat16"):
        low, last = mixer(x)
        again, _ = mixer(x, last)
    assert low.dtype == again.dtype == torch.bfloat16
    assert all(part.dtype == torch.float32 for part in last.values())
    for near, exact in ((last["h"], state["h"]), (low.float(), y)):
        assert 0 < (near - exact).norm() < 0.02 * exact.norm()
    low.float().sum().backward()
    assert all(gradient_of(parameter).dtype == torch.float32 for parameter in mixer.parameters())
