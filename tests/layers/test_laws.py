"""The laws for each row of the table: in float64 on the reference, in float32 on the path that is default."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.layers import laws
from tests.layers.laws import Trial, on_path
from tests.layers.rows import ROWS, D, make

PATHS = {"reference": (torch.float64, 1e-10), "default": (torch.float32, 3e-5)}


def trial_of(name: str, path: str) -> Trial:
    dtype, tolerance = PATHS[path]
    row = ROWS[name]
    return Trial(make(name, dtype), D, dtype, tolerance, row.standing_nan, row.exact)


@pytest.fixture(params=[(name, path) for name in ROWS for path in PATHS], ids="-".join)
def trial(request):
    """The module on the path under test; at the end, that it was the one that ran."""
    name, path = request.param
    with on_path(path == "reference") as ran:
        yield trial_of(name, path)
    assert path == "reference" or ROWS[name].default in ran


@pytest.mark.parametrize("cuts", [[1], [4, 5], [10], [3, 6, 9], list(range(1, laws.T))])
def test_chunks(trial, cuts):
    laws.chunks(trial, cuts)


def test_start_state_is_no_state(trial):
    laws.start_state_is_no_state(trial)


@pytest.mark.parametrize("t", [1, 5, laws.T - 1])
def test_causality(trial, t):
    assert laws.causality(trial, t).ne(0).any()


def test_padding_and_batch(trial):
    laws.padding_and_batch(trial)


def test_select_and_reset(trial):
    laws.select_and_reset(trial)


def test_storage(trial):
    laws.storage(trial)


def test_one_by_one(trial):
    laws.one_by_one(trial)


def test_every_parameter_learns(trial):
    laws.every_parameter_learns(trial)


@pytest.mark.parametrize("name", list(ROWS))
def test_reset_parameters_fills_everything(name):
    """A module made without storage (meta device) is filled by `reset_parameters` alone."""
    with torch.device("meta"):
        module = ROWS[name].make()
    module = module.to_empty(device="cpu")
    with torch.no_grad():
        for part in (*module.parameters(), *module.buffers()):
            part.fill_(torch.nan)
    for part in module.modules():
        if hasattr(part, "reset_parameters"):
            part.reset_parameters()
    assert all(part.isfinite().all() for part in (*module.parameters(), *module.buffers()))


def lengths_of_chunks(most: int = 5) -> st.SearchStrategy[list[list[int]]]:
    """For each of 1 to 4 chunks, the lengths of 1 to 4 rows."""
    row = st.integers(0, most)
    return st.integers(1, 4).flatmap(
        lambda rows: st.lists(st.lists(row, min_size=rows, max_size=rows), min_size=1, max_size=4)
    )


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(list(ROWS)), lengths_of_chunks())
def test_any_lengths(name, lengths):
    """In float64, on the default path."""
    laws.any_lengths(trial_of(name, "reference"), lengths)
