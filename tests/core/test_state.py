"""State trees: select, detach, reset, finite_rows, pack and unpack on any tree."""

import json
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from foveal.core.state import (
    detach_state,
    finite_rows,
    map_state,
    pack,
    reorder,
    reset_rows,
    select_rows,
    unpack,
)
from tests.support.gradients import gradient_of

B = 3
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool)
tensors = st.builds(
    lambda shape, dtype: torch.randn((B, *shape)).to(dtype),
    st.lists(st.integers(0, 3), max_size=3),
    st.sampled_from(DTYPES),
)
trees = st.recursive(
    st.none() | st.integers(0, 9) | tensors,
    lambda part: (
        st.lists(part, max_size=3)
        | st.lists(part, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3), part, max_size=3)
    ),
    max_leaves=6,
)


def alike(a: Any, b: Any) -> bool:
    """The same structure, the same types, the same bits."""
    if isinstance(a, Tensor):
        return isinstance(b, Tensor) and a.dtype == b.dtype and torch.equal(a, b)
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(alike(a[name], b[name]) for name in a)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(alike, a, b))
    return a == b


def leaves(tree: object) -> list[Tensor]:
    found: list[Tensor] = []
    map_state(lambda leaf: found.append(leaf) if isinstance(leaf, Tensor) else None, tree)
    return found


@given(trees)
def test_pack_and_unpack(tree):
    """Through JSON and back, in storage of its own."""
    tensors, skeleton = pack(tree)
    again = unpack(tensors, json.loads(json.dumps(skeleton)))
    assert alike(again, tree)
    places = {leaf.data_ptr() for leaf in leaves(tree) if leaf.numel()}
    assert not places & {tensor.data_ptr() for tensor in tensors.values() if tensor.numel()}


def test_reorder_leaves_what_is_of_a_memory():
    """All else is selected, at any depth."""
    keys, h = torch.randn(B, 2), torch.randn(B, 4)
    state = {"blocks": ({"memory_keys": keys, "h": h}, [h]), "filled": 3}
    rows = torch.tensor([2, 0, 0])
    moved = reorder(state, rows)
    assert moved["blocks"][0]["memory_keys"] is keys
    assert moved["filled"] == 3
    assert alike(moved["blocks"][0]["h"], h[rows])
    assert alike(moved["blocks"][1], [h[rows]])


@given(trees, st.lists(st.integers(0, B - 1), min_size=1, max_size=5))
def test_select(tree, rows):
    chosen = select_rows(tree, torch.tensor(rows))
    assert alike(chosen, map_state(lambda leaf: leaf[rows] if isinstance(leaf, Tensor) else leaf, tree))


def test_select_is_fresh_storage_even_of_every_row():
    tree: dict[str, Any] = {"h": torch.randn(B, 2), "filled": 4}
    chosen = select_rows(tree, torch.arange(B))
    chosen["h"].zero_()
    assert tree["h"].ne(0).all()
    assert chosen["filled"] == 4


def test_detach():
    weight = torch.randn(B, 2, requires_grad=True)
    state = detach_state({"h": weight * 2, "parts": [weight.tanh(), None], "filled": 1})
    assert not any(leaf.requires_grad for leaf in leaves(state))
    assert torch.equal(state["h"], weight * 2)


def test_reset():
    """Rows go back to the start, which goes on learning; the others keep their bits and their gradient."""
    learned = torch.randn(2, requires_grad=True)
    now = torch.randn(B, 2, requires_grad=True)
    rows = torch.tensor([True, False, True])
    after = reset_rows({"h": now, "none": None}, rows, {"h": learned.expand(B, -1), "none": None})
    assert torch.equal(after["h"][1], now[1])
    assert torch.equal(after["h"][[0, 2]], learned.expand(2, -1))
    after["h"].sum().backward()
    assert torch.equal(gradient_of(learned), torch.full((2,), 2.0))
    assert torch.equal(gradient_of(now), torch.tensor([[0.0, 0], [1, 1], [0, 0]]))


def test_reset_stands_numbers_that_are_not_finite():
    now = torch.full((B, 2), torch.nan)
    after = reset_rows(now, torch.tensor([True, True, False]), torch.zeros(B, 2))
    assert after[:2].eq(0).all()


def test_reset_of_a_cache():
    """A start with less capacity is extended by zeros; the bound on what is in use stays a bound."""
    now: dict[str, Any] = {"keys": torch.randn(B, 5, 2, 4), "count": torch.tensor([3, 5, 2]), "filled": 5}
    start = {"keys": torch.ones(B, 1, 2, 4), "count": torch.zeros(B, dtype=torch.long), "filled": 0}
    after = reset_rows(now, torch.tensor([False, True, False]), start)
    assert torch.equal(after["keys"][[0, 2]], now["keys"][[0, 2]])
    assert after["keys"][1, 0].eq(1).all()
    assert after["keys"][1, 1:].eq(0).all()
    assert after["count"].tolist() == [3, 0, 2]
    assert after["filled"] == 5
    none = reset_rows(now["keys"], torch.tensor([True] * 3), torch.zeros(B, 0, 2, 4))
    assert none.shape == now["keys"].shape
    assert none.eq(0).all()


def test_reset_keeps_the_dtype():
    after = reset_rows(torch.zeros(B, 2, dtype=torch.bfloat16), torch.tensor([True] * B), torch.ones(B, 2))
    assert after.dtype == torch.bfloat16


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_finite_rows(bad):
    """Leaves of any number of axes count, one number a row among them."""
    state: dict[str, Any] = {
        "h": torch.zeros(B, 2),
        "deep": ([torch.zeros(B, 2, 2)], None),
        "count": torch.arange(B),
        "mean": torch.zeros(B),
    }
    assert finite_rows(state, B).all()
    state["deep"][0][0][1, 1, 0] = bad
    assert finite_rows(state, B).tolist() == [True, False, True]
    state["h"][2, 0] = bad
    assert finite_rows(state, B).tolist() == [True, False, False]
    state["mean"][0] = bad
    assert not finite_rows(state, B).any()
