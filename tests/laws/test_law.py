"""A broken law says what differs, and by how much."""

import pytest
import torch
from torch import nn

from foveal.laws import head_laws
from foveal.laws.law import LawBroken, largest_difference, require_close, require_equal, reset_all_parameters

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("a", "b", "difference"),
    [([1.0, 2.0], [1.0, 2.5], 0.5), ([1.0, NAN], [1.0, NAN], 0.0), ([NAN], [0.0], INF), ([], [], 0.0)],
)
def test_largest_difference(a: list[float], b: list[float], difference: float) -> None:
    assert largest_difference(torch.tensor(a), torch.tensor(b)) == difference


def test_comparisons() -> None:
    one, other = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.5])
    require_close(one, other, 0.3, "close")
    with pytest.raises(LawBroken, match=r"^far \(largest difference 0\.5\)$"):
        require_close(one, other, 1e-6, "far")
    with pytest.raises(LawBroken, match="unequal"):
        require_equal(one, other, "unequal")
    with pytest.raises(LawBroken, match=r"of the shape \(2,\), not \(1,\)"):
        require_equal(one, other[:1], "a result")


def test_a_parameter_that_is_not_reset() -> None:
    class Forgets(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gain = nn.Parameter(torch.ones(2))

    with pytest.raises(LawBroken, match="reset_parameters leaves gain as it was"):
        reset_all_parameters(Forgets())


class WholeMean(nn.Module):
    """A head whose mean counts places without a vector."""

    def __init__(self) -> None:
        super().__init__()
        self.projection = nn.Linear(4, 3).double()

    def forward(self, memory):
        return memory.vectors.mean(1), {}

    def project(self, features):
        return self.projection(features)


@pytest.mark.parametrize("law", [head_laws.padding, head_laws.batch])
def test_a_head_that_counts_padding(law) -> None:
    head = WholeMean()
    run = head_laws.runner(head, False)
    head_laws.shape(run, 4, 3, False)
    head_laws.every_parameter_learns(head, run, 4)
    with pytest.raises(LawBroken):
        law(run, 4, False)
