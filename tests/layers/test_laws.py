"""The laws of every mixer, block and stack, each in float64 on the reference and in float32 by default."""

from contextlib import nullcontext

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from foveal.core.state import detach, map_state, reset, select
from foveal.ops.dispatch import recorded_paths, reference_only
from tests.layers.rows import ROWS, D, entries, make, run

B, T = 3, 11
PATHS = {"reference": (torch.float64, 1e-10), "default": (torch.float32, 3e-5)}


@pytest.fixture(params=list(PATHS))
def path(request):
    """The path under test; at the end, that it was the one that ran."""
    dtype, tolerance = PATHS[request.param]
    with recorded_paths() as ran, reference_only() if request.param == "reference" else nullcontext():
        yield dtype, tolerance
    fast = [step for step in ran if not step.endswith(":reference")]
    if request.param == "reference":
        assert ran
        assert not fast
    else:
        name = request.node.callspec.params["name"]
        assert ROWS[name].default in ran


every_row = pytest.mark.parametrize("name", list(ROWS))


def close(a: Tensor, b: Tensor, tolerance: float) -> None:
    torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def gradients(module: nn.Module, outputs: list[Tensor], *inputs: Tensor) -> list[Tensor]:
    """The gradient of a fixed random functional of `outputs`, to every parameter and input."""
    generator = torch.Generator().manual_seed(1)
    loss = torch.zeros((), dtype=outputs[0].dtype)
    for output in outputs:
        if output.is_floating_point() and output.requires_grad:
            weight = torch.randn(output.shape, generator=generator, dtype=torch.float64).to(output.dtype)
            loss = loss + (output * weight).sum()
    wanted = [*module.parameters(), *inputs]
    found = torch.autograd.grad(loss, wanted, allow_unused=True)
    return [torch.zeros_like(w) if g is None else g for w, g in zip(wanted, found, strict=True)]


@every_row
@pytest.mark.parametrize("cuts", [[1], [4, 5], [10], [3, 6, 9], list(range(1, T))])
def test_chunks(name, path, cuts):
    """A whole sequence equals any split of it, in outputs, final state and gradients."""
    dtype, tolerance = path
    module = make(name, dtype)
    x = torch.randn(B, T, D, dtype=dtype, requires_grad=True)
    whole, last = run(module, x)
    state, parts = None, []
    for part in x.tensor_split(cuts, 1):
        y, state = run(module, part, state)
        parts.append(y)
    pieces = torch.cat(parts, 1)
    close(pieces, whole, tolerance)
    for a, b in zip(entries(module, state), entries(module, last), strict=True):
        close(a, b, tolerance)
    scale = 10 * tolerance
    for a, b in zip(
        gradients(module, [pieces, *entries(module, state)], x),
        gradients(module, [whole, *entries(module, last)], x),
        strict=True,
    ):
        close(a, b, scale)


@every_row
def test_start_state_is_no_state(name, path):
    dtype, tolerance = path
    module = make(name, dtype)
    x = torch.randn(B, T, D, dtype=dtype)
    for start in (module.init_state(B), module.init_state(B, capacity=2 * T)):
        y, state = run(module, x, start)
        want, last = run(module, x)
        close(y, want, tolerance)
        for a, b in zip(entries(module, state), entries(module, last), strict=True):
            close(a, b, tolerance)


@every_row
@pytest.mark.parametrize("t", [1, 5, T - 1])
def test_causality(name, path, t):
    """Other inputs from t on change no earlier output, bit for bit; no gradient flows to the future."""
    dtype, tolerance = path
    module = make(name, dtype)
    x = torch.randn(B, T, D, dtype=dtype, requires_grad=True)
    y, _ = run(module, x)
    (gradient,) = torch.autograd.grad(y[:, :t].square().sum(), x)
    assert gradient[:, t:].eq(0).all()
    assert gradient[:, t - 1].ne(0).any()
    changes = [1e3] + [float("nan")] * ROWS[name].standing_nan
    for value in changes:
        other = x.detach().clone()
        other[:, t:] = value
        found = run(module, other)[0][:, :t]
        if ROWS[name].exact:
            assert torch.equal(found, y[:, :t])
        else:
            close(found, y[:, :t], tolerance)


@every_row
def test_padding_and_batch(name, path):
    """NaN in the padding changes nothing, padding gives zeros, a row alone equals the row in the batch."""
    dtype, tolerance = path
    module = make(name, dtype)
    lengths = torch.tensor([T, 4, 0])
    before, after = torch.randn(2, B, T, D, dtype=dtype)
    _, state = run(module, before, None, torch.tensor([2, T, 5]))
    start = detach(state)
    for state in (None, start):
        padded = after.clone()
        for b, n in enumerate(lengths):
            padded[b, n:] = torch.nan
        clean, other = after.clone().requires_grad_(), padded.requires_grad_()
        y, last = run(module, clean, state, lengths)
        z, end = run(module, other, state, lengths)
        assert torch.equal(y, z)
        assert all(y[b, n:].eq(0).all() for b, n in enumerate(lengths))
        a = gradients(module, [y, *entries(module, last)], clean)
        c = gradients(module, [z, *entries(module, end)], other)
        assert all(torch.equal(g, h) and g.isfinite().all() for g, h in zip(a, c, strict=True))
        for b, n in enumerate(lengths.tolist()):
            row = torch.tensor([b])
            alone = None if state is None else select(state, row)
            if n:
                own, own_last = run(module, after[b : b + 1, :n], alone)
                close(own[0], y[b, :n].detach(), tolerance)
            else:
                own_last = module.init_state(1) if alone is None else alone
            for e, f in zip(entries(module, own_last), entries(module, select(end, row)), strict=True):
                close(e, f, tolerance)


@every_row
def test_select_and_reset(name, path):
    """Selected rows go on as the rows would have; reset rows go on as from the start; storage is fresh."""
    dtype, tolerance = path
    module = make(name, dtype)
    x, more = torch.randn(2, B, T, D, dtype=dtype)
    with torch.no_grad():
        _, state = run(module, x, None, torch.tensor([T, 3, 7]))
        rows = torch.tensor([2, 0, 2, 1])
        chosen = select(state, rows)
        again = torch.tensor([False, True, False])
        renewed = reset(state, again, module.init_state(B))
        kept = map_state(lambda leaf: leaf.clone() if isinstance(leaf, Tensor) else leaf, state)
        expect, _ = run(module, more, select(state, torch.arange(B)))
        got, _ = run(module, more[rows], chosen)
        close(got, expect[rows], tolerance)
        first, _ = run(module, more)
        got, _ = run(module, more, renewed)
        close(got, torch.where(again[:, None, None], first, expect), tolerance)
        for a, b in zip(entries(module, state), entries(module, kept), strict=True):
            assert torch.equal(a, b)


@every_row
def test_storage(name, path):
    """A start is fresh storage; while gradients flow, one can go on from a passed state a second time."""
    dtype, _ = path
    module = make(name, dtype)
    x = torch.randn(B, T, D, dtype=dtype)
    start = module.init_state(B)
    with torch.no_grad():
        map_state(lambda leaf: leaf.fill_(7) if isinstance(leaf, Tensor) else leaf, start)
    _, state = run(module, x[:, :4], module.init_state(B, capacity=2 * T))
    kept = [entry.clone() for entry in entries(module, state)]
    first, _ = run(module, x[:, 4:], state)
    again, _ = run(module, x[:, 4:], state)
    assert torch.equal(first, again)
    assert all(map(torch.equal, entries(module, state), kept))
    assert all(gradient.isfinite().all() for gradient in gradients(module, [first, again]))
    assert all(parameter.abs().le(0.7).all() for parameter in module.parameters())


@every_row
def test_every_parameter_learns(name, path):
    """From the start state every parameter's gradient exists and is finite."""
    dtype, _ = path
    module = make(name, dtype)
    y, _ = run(module, torch.randn(B, T, D, dtype=dtype))
    y.square().sum().backward()
    for parameter_name, parameter in module.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.isfinite().all(), parameter_name


@every_row
def test_reset_parameters_fills_everything(name):
    """A module made without storage (meta device) is filled by `reset_parameters` alone."""
    with torch.device("meta"):
        module = ROWS[name].make()
    module = module.to_empty(device="cpu")
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.fill_(torch.nan)
    for part in module.modules():
        if hasattr(part, "reset_parameters"):
            part.reset_parameters()
    assert all(parameter.isfinite().all() for parameter in module.parameters())


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_laws_hold_for_any_lengths_and_split(data):
    """Chunks with ragged lengths: pieces of each row, padded anyhow, equal the row whole."""
    name = data.draw(st.sampled_from(list(ROWS)))
    module = make(name, torch.float64)
    rows, chunks = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    lengths = data.draw(
        st.lists(st.lists(st.integers(0, 5), min_size=rows, max_size=rows), min_size=chunks, max_size=chunks)
    )
    texts = [torch.randn(sum(chunk[b] for chunk in lengths), D, dtype=torch.float64) for b in range(rows)]
    state, seen, outputs = None, [0] * rows, [[] for _ in range(rows)]
    for chunk in lengths:
        x = torch.full((rows, max(max(chunk), 1), D), torch.nan, dtype=torch.float64)
        for b, n in enumerate(chunk):
            x[b, :n] = texts[b][seen[b] : seen[b] + n]
        y, state = run(module, x, state, torch.tensor(chunk))
        for b, n in enumerate(chunk):
            outputs[b].append(y[b, :n])
            seen[b] += n
    for b, text in enumerate(texts):
        if len(text):
            whole, last = run(module, text[None])
            close(torch.cat(outputs[b]), whole[0], 1e-10)
            for a, c in zip(
                entries(module, select(state, torch.tensor([b]))), entries(module, last), strict=True
            ):
                close(a, c, 1e-10)
