"""A Transformer writes in one piece: equal to layer by layer, and only where it may."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from foveal import capture
from foveal.core.state import map_state, select_rows
from foveal.heads.decoder_lm import DecoderLM
from foveal.layers.blocks.stack import fuse_for_decoding
from foveal.layers.linear import Linear
from foveal.models.decoder import language_model
from foveal.ops.fused_decode_step import SUPPORTED_ACTIVATIONS
from foveal.ops.jit.dispatch import record_paths, reference_only
from foveal.tasks.config import from_tables

V, STEP = 11, "fused_decode:step"


def model(**settings: object) -> DecoderLM:
    """Of width 48 with heads of 12, which the kernels' vectors do not divide; its weights matter."""
    table = {
        "mixers": "attention",
        "layers": 3,
        "width": 48,
        "attention": {"heads": 4},
        "feedforward": "mlp",
        "norm": "layer",
        "residual": True,
        **settings,
    }
    made = language_model(from_tables({"model": table}).model, V, 64).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return made


@torch.no_grad()
def write(head: DecoderLM, tokens: torch.Tensor, state: Any) -> tuple[torch.Tensor, Any, bool]:
    """Features one position at a time, the last state, and whether it all went in one piece."""
    features, fused = [], fuse_for_decoding(head)
    with record_paths() as ran, fused.active():
        for token in tokens.split(1, 1):
            y, state, _ = head(token, state)
            features.append(y)
    return torch.cat(features, 1), state, ran.count(STEP) == tokens.shape[1] and "attention:cached" not in ran


def equal(found: Any, expected: Any) -> None:
    def leaf(one: Any, other: Any) -> Any:
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
        return one

    map_state(leaf, found, expected)


@pytest.mark.parametrize("rows", [1, 8])
@pytest.mark.parametrize(("norm", "positions"), [("layer", "learned"), ("rms", "rotary")])
@pytest.mark.parametrize("network", [*SUPPORTED_ACTIVATIONS, "swiglu"])
def test_it_equals_layer_by_layer(network: str, norm: str, positions: str, rows: int) -> None:
    """Outputs, keys, values and counts; with room for all, for some, and after prompts of several lengths."""
    own = {"feedforward": "swiglu"} if network == "swiglu" else {"activation": network}
    head = model(norm=norm, positions={"kind": positions}, **own)
    tokens, lengths = torch.randint(V, (rows, 9)), torch.randint(1, 6, (rows,))
    for room in (20, 3):
        with torch.no_grad():
            _, state, _ = head(tokens[:, :5], head.init_state(None, rows, room), lengths)
        copied = select_rows(state, torch.arange(rows))
        found, after, piece = write(head, tokens, state)
        with reference_only():
            expected, reference, other = write(head, tokens, copied)
        assert piece
        assert not other
        equal(found, expected)
        equal(after, reference)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_any_number_of_threads(threads: int) -> None:
    head, tokens = model(width=256, layers=2), torch.randint(V, (2, 20))
    expected, _, _ = write(head, tokens, head.init_state(None, 2, 20))
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for _ in range(10):
            equal(write(head, tokens, head.init_state(None, 2, 20))[0], expected)
    finally:
        torch.set_num_threads(before)


OTHERS: dict[str, dict[str, object]] = {
    "windowed": {"attention": {"heads": 4, "window": 3}},
    "post-norm": {"norm_placement": "post"},
    "no residual": {"residual": False},
    "no norm": {"norm": "none"},
    "no network": {"feedforward": "none"},
    "experts": {"feedforward": "moe"},
    "elu": {"activation": "elu"},
    "narrow": {"width": 40},
    "narrow inside": {"expansion": 0.5},
}


@pytest.mark.parametrize("settings", OTHERS.values(), ids=OTHERS)
def test_other_blocks_go_layer_by_layer(settings: dict[str, object]) -> None:
    head, tokens = model(**settings), torch.randint(V, (2, 5))
    with torch.no_grad():
        expected, _, _ = head(tokens)
    found, _, piece = write(head, tokens, head.init_state(None, 2, 5))
    assert not piece
    equal(found, expected)


def test_of_a_hybrid_those_that_can() -> None:
    head, tokens = model(mixers="mamba,attention,attention", layers=6), torch.randint(V, (2, 5))
    with torch.no_grad():
        expected, _, _ = head(tokens)
    found, _, _ = write(head, tokens, head.init_state(None, 2, 5))
    equal(found, expected)
    with record_paths() as ran, torch.no_grad(), fuse_for_decoding(head).active():
        head(tokens[:, :1], head.init_state(None, 2, 5))
    assert ran.count(STEP) == 2


@pytest.mark.parametrize("rows", [9, 20])
def test_many_rows_go_layer_by_layer(rows: int) -> None:
    head = model()
    assert not write(head, torch.randint(V, (rows, 3)), head.init_state(None, rows, 3))[2]


def test_other_numbers_go_layer_by_layer() -> None:
    head = model().double()
    assert not write(head, torch.randint(V, (2, 3)), head.init_state(None, 2, 3))[2]


def test_compiled_it_goes_layer_by_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Addresses of tensors mean nothing while torch.compile looks on."""
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    head = model()
    assert not write(head, torch.randint(V, (2, 2)), head.init_state(None, 2, 2))[2]


def test_training_goes_layer_by_layer() -> None:
    """Also without gradients: there is dropout."""
    head = model(dropout=0.5).train()
    assert not write(head, torch.randint(V, (2, 2)), head.init_state(None, 2, 2))[2]


def test_autocast_goes_layer_by_layer() -> None:
    head = model()
    with torch.autocast("cpu", torch.bfloat16):
        assert not write(head, torch.randint(V, (2, 2)), head.init_state(None, 2, 2))[2]


def test_inputs_may_lie_as_they_like() -> None:
    stack = model(positions={"kind": "rotary"}).stack
    x = torch.randn(48, 1, 3).permute(2, 1, 0)
    with torch.no_grad():
        expected, _, _ = stack(x.contiguous(), stack.init_state(3, 2))
        with record_paths() as ran, fuse_for_decoding(stack).active():
            found, _, _ = stack(x, stack.init_state(3, 2))
    assert ran == [STEP]
    equal(found, expected)


def test_gradients_go_layer_by_layer() -> None:
    head = model()
    with record_paths() as ran, fuse_for_decoding(head).active():
        y, _, _ = head(torch.randint(V, (2, 1)), head.init_state(None, 2, 3))
    assert STEP not in ran
    y.sum().backward()
    assert all(p.grad is not None for p in head.stack.parameters())


def test_who_looks_sees() -> None:
    """A tap, and a hook anywhere in a block."""
    head: Any
    head, tokens = model(), torch.randint(V, (2, 4))
    expected, _, piece = write(head, tokens, head.init_state(None, 2, 4))
    assert piece
    with capture(head) as seen:
        found, _, piece = write(head, tokens, head.init_state(None, 2, 4))
    assert not piece
    assert len(seen["stack.blocks.1.mixer/weights"]) == 4
    equal(found, expected)
    called = []
    hook = head.stack.blocks[1].feedforward.expand.register_forward_hook(lambda *_: called.append(1))
    equal(write(head, tokens, head.init_state(None, 2, 4))[0], expected)
    assert len(called) == 4
    hook.remove()
    assert write(head, tokens, head.init_state(None, 2, 4))[2]


class Louder(Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(x)


def _louder(head: Any) -> None:
    other = Louder(48, 48)
    other.load_state_dict(head.stack.blocks[1].mixer.output.state_dict())
    head.stack.blocks[1].mixer.output = other


def _patched(head: Any) -> None:
    layer: Any = head.stack.blocks[2].feedforward.contract
    layer.forward = lambda x: x[..., :48] * 3


CHANGES: dict[str, Callable[[Any], object]] = {
    "layer": _louder,
    "forward": _patched,
    "activation": lambda head: setattr(head.stack.blocks[0].feedforward, "activation", "relu"),
    "epsilon": lambda head: setattr(head.stack.blocks[0].mixer_norm, "epsilon", 3.0),
    "place": lambda head: setattr(head.stack.blocks[0], "pre", False),
    "window": lambda head: setattr(head.stack.blocks[0].mixer, "rotary", True),
    "parameter": lambda head: setattr(
        head.stack.blocks[0].mixer.value, "weight", nn.Parameter(torch.randn(48, 48))
    ),
    "no bias": lambda head: setattr(head.stack.blocks[0].mixer.value, "bias", None),
    "data": lambda head: setattr(head.stack.blocks[0].mixer.value.weight, "data", torch.randn(48, 48)),
    "turned": lambda head: setattr(head.stack.blocks[0].mixer.value.weight, "data", torch.randn(48, 48).T),
    "in place": lambda head: head.stack.blocks[0].mixer.value.weight.data.mul_(5),
    "loaded": lambda head: head.load_state_dict(model().state_dict()),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_is_changed_counts(change: Callable[[DecoderLM], object]) -> None:
    """A model that has written once, then changed, writes as the changed one."""
    head, tokens = model(positions={"kind": "none"}), torch.randint(V, (2, 4))
    before, _, _ = write(head, tokens, head.init_state(None, 2, 4))
    change(head)
    found, _, _ = write(head, tokens, head.init_state(None, 2, 4))
    with reference_only():
        expected, _, _ = write(head, tokens, head.init_state(None, 2, 4))
    assert not torch.allclose(found, before, atol=1e-3)
    equal(found, expected)


def test_only_who_asks_gets_it() -> None:
    """Outside `active`, and in a model that was not asked, blocks go layer by layer."""
    head, other, token = model(), model(), torch.randint(V, (1, 1))
    fused = fuse_for_decoding(head)
    with record_paths() as ran, torch.no_grad():
        with fused.active():
            other(token, other.init_state(None, 1, 2))
        head(token, head.init_state(None, 1, 2))
        assert STEP not in ran
        with fused.active(), fused.active():
            head(token, head.init_state(None, 1, 2))
        assert STEP in ran


def test_it_goes_on_with_the_weights_that_it_saw() -> None:
    """Their memory stays, so that a parameter replaced behind its back reads no foreign memory."""
    head, tokens = model(), torch.randint(V, (1, 3))
    fused = fuse_for_decoding(head)
    expected, _, _ = write(head, tokens, head.init_state(None, 1, 3))
    for parameter in head.stack.blocks.parameters():
        parameter.data = torch.full_like(parameter.data, torch.nan)
    state = head.init_state(None, 1, 3)
    with torch.no_grad(), fused.active():
        for place, token in enumerate(tokens.split(1, 1)):
            y, state, _ = head(token, state)
            equal(y, expected[:, place : place + 1])


def test_a_copy_has_weights_of_its_own() -> None:
    head, tokens = model(), torch.randint(V, (1, 3))
    expected, _, _ = write(head, tokens, head.init_state(None, 1, 3))
    other = copy.deepcopy(head)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(2)
    found, _, piece = write(other, tokens, other.init_state(None, 1, 3))
    assert piece
    assert not torch.allclose(found, expected)
    equal(write(head, tokens, head.init_state(None, 1, 3))[0], expected)


def test_a_bad_number_stays_in_its_row() -> None:
    head, tokens = model(layers=2), torch.randint(V, (3, 4))
    expected, _, _ = write(head, tokens, head.init_state(None, 3, 4))
    state = head.init_state(None, 3, 4)
    _, state, _ = write(head, tokens[:, :1], state)
    state["blocks"][0]["keys"][1, 0] = torch.nan
    found, _, piece = write(head, tokens[:, 1:], state)
    assert piece
    equal(found[[0, 2]], expected[[0, 2], 1:])
    assert found[1].isnan().all()


WRONG: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "rows": (lambda s: s.update(keys=s["keys"][:1]), "the state's keys has the shape"),
    "heads": (lambda s: s.update(values=torch.zeros(2, 4, 2, 24)), "the state's values has the shape"),
    "numbers": (lambda s: s.update(keys=s["keys"].double()), "the state's keys is of torch.float64"),
    "other": (lambda s: s.pop("count"), "a state of another mixer"),
}


@pytest.mark.parametrize(("break_it", "told"), WRONG.values(), ids=WRONG)
def test_a_wrong_state_is_refused(break_it: Callable[[dict[str, Any]], object], told: str) -> None:
    head = model()
    state = head.init_state(None, 2, 4)
    for block in state["blocks"]:
        break_it(block)
    with pytest.raises(ValueError, match=told), torch.no_grad(), fuse_for_decoding(head).active():
        head(torch.randint(V, (2, 1)), state)
