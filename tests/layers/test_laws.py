"""The laws for each row of the table: in float64 on the reference, in float32 on the path that is default."""

from collections.abc import Iterable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from foveal.laws import mixer_laws as laws
from foveal.laws.law import reset_everything
from foveal.laws.trial import T, Trial
from tests.support.mixer_laws import lengths_of_chunks, on_path
from tests.support.mixer_rows import EVERY, READING, ROWS, D, make_row_module, memory_of

PATHS = {"reference": (torch.float64, 1e-10), "default": (torch.float32, 3e-5)}


def trial_of(name: str, path: str) -> Trial:
    dtype, tolerance = PATHS[path]
    row = EVERY[name]
    module = make_row_module(name, dtype)
    return Trial(module, D, dtype, tolerance, row.standing_nan, row.exact, memory_of(name, dtype))


def on_both_paths(names: Iterable[str]) -> pytest.MarkDecorator:
    """`trial` is each of the modules, on each path."""
    cases = [(name, path) for name in names for path in PATHS]
    return pytest.mark.parametrize("trial", cases, ids="-".join, indirect=True)


@pytest.fixture
def trial(request):
    """The module on the path under test; at the end, that it was the one that ran."""
    name, path = request.param
    with on_path(path == "reference") as ran:
        yield trial_of(name, path)
    default = EVERY[name].default
    assert path == "reference" or not default or default in ran


stepwise = on_both_paths(ROWS | READING)
every_row = on_both_paths(EVERY)


@stepwise
@pytest.mark.parametrize("cuts", [[1], [4, 5], [10], [3, 6, 9], list(range(1, T))])
def test_chunks(trial, cuts):
    laws.chunks(trial, cuts)


@stepwise
def test_start_state_is_no_state(trial):
    laws.start_state_is_no_state(trial)


@stepwise
@pytest.mark.parametrize("t", [1, 5, T - 1])
def test_causality(trial, t):
    assert laws.causality(trial, t).ne(0).any()


@every_row
def test_padding_and_batch(trial):
    laws.padding_and_batch(trial)


@stepwise
def test_select_and_reset(trial):
    laws.select_and_reset(trial)


@stepwise
def test_storage(trial):
    laws.storage(trial)


@stepwise
def test_one_by_one(trial):
    laws.one_by_one(trial)


@stepwise
def test_keeps_nothing(trial):
    laws.keeps_nothing(trial)


@every_row
def test_every_parameter_learns(trial):
    laws.every_parameter_learns(trial)


@pytest.mark.parametrize("name", list(EVERY))
def test_reset_parameters_fills_everything(name):
    """A module made without storage (meta device) is filled by `reset_parameters` alone."""
    with torch.device("meta"):
        module = EVERY[name].make()
    module.to_empty(device="cpu")
    reset_everything(module, [*module.named_parameters(), *module.named_buffers()])


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(list(ROWS | READING)), lengths_of_chunks())
def test_any_lengths(name, lengths):
    """In float64, on the default path."""
    laws.any_lengths(trial_of(name, "reference"), lengths)
