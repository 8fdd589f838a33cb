"""The ridge classifier: equal to its definition, with true leave-one-out predictions."""

import math

import pytest
import torch
from torch.nn import functional as F

from foveal.ops.ridge import logit_scale, ridge_classifier


def blobs(count: int, width: int, classes: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    labels = torch.arange(count) % classes
    centers = torch.randn(classes, width, generator=generator)
    return centers[labels] + 2 * torch.randn(count, width, generator=generator) + 5, labels


def solve(features: torch.Tensor, labels: torch.Tensor, penalty: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return weights and bias of the definition."""
    targets = 2.0 * F.one_hot(labels, 3).double() - 1
    mean, target_mean = features.mean(0), targets.mean(0)
    X = features - mean
    weight = torch.linalg.solve(
        X.T @ X + penalty * torch.eye(X.shape[1], dtype=X.dtype), X.T @ (targets - target_mean)
    )
    return weight.T, target_mean - weight.T @ mean


@pytest.mark.parametrize("width", [4, 60])
def test_equals_the_normal_equations_and_leaves_each_row_out(width: int) -> None:
    features, labels = blobs(30, width)
    features = features.double()
    fit = ridge_classifier(features, labels, 3)
    weight, bias = solve(features, labels, fit.penalty)
    factor = float(fit.bias[0] / bias[0])
    assert factor > 0
    torch.testing.assert_close(fit.weight, factor * weight)
    torch.testing.assert_close(fit.bias, factor * bias)
    targets = 2.0 * F.one_hot(labels, 3).double() - 1
    for row in (0, 17):
        rest = torch.arange(30) != row
        X = features - features.mean(0)
        ones = torch.ones(30, 1, dtype=X.dtype)
        design = torch.cat([X, ones], 1)[rest]
        penalty = fit.penalty * torch.eye(width + 1, dtype=X.dtype)
        penalty[-1, -1] = 0
        leave_one_out = torch.linalg.solve(design.T @ design + penalty, design.T @ targets[rest])
        predicted = torch.cat([X, ones], 1)[row] @ leave_one_out
        torch.testing.assert_close(fit.leave_one_out[row], factor * predicted, rtol=1e-6, atol=1e-6)


def test_logits_are_probabilities_of_left_out_rows() -> None:
    features, labels = blobs(200, 10)
    fit = ridge_classifier(features, labels, 3)
    scaled = [float(F.cross_entropy(fit.leave_one_out * factor, labels)) for factor in (0.8, 1.0, 1.25)]
    assert scaled[1] == min(scaled)
    assert scaled[1] < math.log(3)


def test_noise_is_shrunk_to_the_frequencies_of_the_classes() -> None:
    generator = torch.Generator().manual_seed(3)
    features, labels = torch.randn(60, 500, generator=generator), torch.arange(60) % 4 // 3
    fit = ridge_classifier(features, labels, 2)
    assert float(F.cross_entropy(fit.leave_one_out, labels)) < 0.7
    assert bool(fit.leave_one_out.argmax(1).eq(0).float().mean() > 0.7)


def test_constant_features_and_equal_rows_do_no_harm() -> None:
    features, labels = blobs(20, 4)
    features[:, 1] = 3.0
    doubled, twice = torch.cat([features, features]), torch.cat([labels, labels])
    fit = ridge_classifier(doubled, twice, 3)
    assert bool(fit.weight.isfinite().all())
    assert bool(fit.weight[:, 1].abs().lt(1e-5).all())


def test_scale_is_the_likeliest() -> None:
    labels = torch.arange(100) % 2
    scores = F.one_hot(labels, 2).double()
    scores[:25] = scores[:25].flip(1)
    factor = logit_scale(scores, labels)
    assert factor == pytest.approx(math.log(3), rel=0.03)  # a quarter is wrong, and one more row in 102
    sure = logit_scale(F.one_hot(labels, 2).double(), labels)
    assert sure == pytest.approx(math.log(101), rel=1e-3)


def test_too_few_rows_and_too_many_are_refused() -> None:
    with pytest.raises(ValueError, match="at least two rows"):
        ridge_classifier(torch.zeros(1, 3), torch.zeros(1, dtype=torch.int64), 2)
    with pytest.raises(ValueError, match="more than 8,192"):
        ridge_classifier(torch.zeros(8193, 8193), torch.zeros(8193, dtype=torch.int64), 2)
