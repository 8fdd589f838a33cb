"""Gaussian filters against the paper's formulas, written out number by number."""

import math

import numpy as np
import torch

from foveal.tasks.draw.gaussian_filters import filter_grid, gaussian_filters, read_patch, write_patch
from tests.support.gradients import gradient_of


def written_out(center: float, stride: float, std: float, count: int, extent: int) -> np.ndarray:
    """`F[i, a]`, i and a from 1 (Gregor et al. 2015, equations 19 and 25)."""
    found = np.zeros((count, extent))
    for i in range(1, count + 1):
        mean = center + (i - count / 2 - 0.5) * stride
        for a in range(1, extent + 1):
            found[i - 1, a - 1] = math.exp(-((a - mean) ** 2) / (2 * std**2))
        found[i - 1] /= found[i - 1].sum()
    return found


def test_filters_are_the_formula_s() -> None:
    draw = np.random.default_rng(0)
    centres, strides, deviations = draw.uniform(1, 9, 6), draw.uniform(0.2, 3, 6), draw.uniform(0.5, 2, 6)
    center, stride, std = (torch.from_numpy(x) for x in (centres, strides, deviations))
    found = gaussian_filters(center, stride, std, 4, 9)
    for row, numbers in enumerate(zip(centres, strides, deviations, strict=True)):
        np.testing.assert_allclose(found[row], written_out(*numbers, 4, 9), atol=1e-12)


def test_a_patch_is_read_and_written_by_a_grid() -> None:
    """Equations 21 to 24, 27 and 29, of an image that is not square."""
    numbers = np.random.default_rng(1).normal(0, 0.4, (3, 5))
    images, patches = (
        np.random.default_rng(2).normal(0, 1, (3, 8, 11)),
        np.random.default_rng(3).normal(0, 1, (3, 4, 4)),
    )
    rows, columns, strength = filter_grid(torch.from_numpy(numbers), 4, 8, 11)
    seen = read_patch(torch.from_numpy(images), rows, columns)
    drawn = write_patch(torch.from_numpy(patches), rows, columns)
    for number, (across, down, variance, stride, gamma) in enumerate(numbers):
        delta, sigma = (11 - 1) / (4 - 1) * math.exp(stride), math.exp(variance) ** 0.5
        x = written_out((11 + 1) / 2 * (across + 1), delta, sigma, 4, 11)
        y = written_out((8 + 1) / 2 * (down + 1), delta, sigma, 4, 8)
        np.testing.assert_allclose(seen[number], y @ images[number] @ x.T, atol=1e-12)
        np.testing.assert_allclose(drawn[number], y.T @ patches[number] @ x, atol=1e-12)
        np.testing.assert_allclose(strength[number], math.exp(gamma))


def test_zeros_lay_the_grid_over_the_whole_image() -> None:
    rows, columns, strength = filter_grid(torch.zeros(1, 5), 5, 21, 21)
    assert rows[0].argmax(1).tolist() == columns[0].argmax(1).tolist() == [0, 5, 10, 15, 20]
    assert strength.tolist() == [1.0]


def test_far_outside_and_of_one_filter_it_is_finite() -> None:
    far = torch.tensor([[40.0, -40.0, -9.0, 3.0, 0.0]], requires_grad=True)
    rows, columns, _ = filter_grid(far, 1, 6, 6)
    read_patch(torch.ones(1, 6, 6), rows, columns).sum().backward()
    assert torch.allclose(rows.sum(2), torch.ones(1, 1))
    assert gradient_of(far).isfinite().all()


def test_gradients() -> None:
    torch.manual_seed(0)
    numbers = (0.3 * torch.randn(2, 5)).double().requires_grad_()
    images, patches = (torch.randn(2, side, side, dtype=torch.float64, requires_grad=True) for side in (6, 3))

    def both(numbers: torch.Tensor, images: torch.Tensor, patches: torch.Tensor) -> tuple[torch.Tensor, ...]:
        rows, columns, strength = filter_grid(numbers, 3, 6, 6)
        return strength[:, None, None] * read_patch(images, rows, columns), write_patch(
            patches, rows, columns
        )

    assert torch.autograd.gradcheck(both, (numbers, images, patches))
