"""Budgets in units, and the message that lists what is too large."""

import pytest
import torch
from torch import nn

from foveal import UserError, capture
from foveal.inspection.capture.sizes import over_budget, parse_size
from foveal.layers import RNN


@pytest.mark.parametrize(
    ("size", "count"),
    [("2kB", 2_000), ("2 KiB", 2_048), ("1.5kb", 1_500), ("1.5 GiB", 1_610_612_736), ("7", 7), (7, 7)],
)
def test_a_size_has_decimal_or_binary_units(size, count):
    assert parse_size(size) == count


def test_the_largest_of_many_values_are_named_first():
    sizes = {f"value {number}": number for number in (3, 11, 1, 2, 5, 4, 9, 6, 8, 7, 10)}
    message = str(over_budget(sizes, 50))
    assert message.startswith("the values take 66 B, more than the budget of 50 B")
    listed = ", ".join(f"value {number} {number} B" for number in range(11, 3, -1))
    assert message.endswith(f"sizes: {listed}, and 3 more")


def test_calls_and_steps_add_up_to_the_size_of_a_name():
    """A value of each call, and of a recurrence the gradient at each step."""
    model, x = RNN(3, 5), torch.randn(2, 7, 3)
    with capture(model, "*/h", "grad:*/h", dry_run=True) as record:
        model(x)
    step = 2 * 5 * 4
    assert record.sizes() == {"/h": 7 * step, "grad:/h": 7 * step}
    with capture(model, "*/h", "grad:*/h", dry_run=True) as record:
        model(x)
        model(x[:, :2])
    assert record.sizes() == {"/h": 9 * step, "grad:/h": 9 * step}


def test_a_second_call_may_be_beyond_the_budget():
    model, x = nn.Linear(3, 4), torch.randn(5, 3)
    message = "take 160 B, more than the budget of 100 B"
    with pytest.raises(UserError, match=message), capture(model, "*/output", budget=100):
        nn.Sequential(model, nn.Linear(4, 3), model)(x)
