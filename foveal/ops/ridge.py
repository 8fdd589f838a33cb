"""Linear classifiers in closed form: ridge regression with the penalty chosen by leave-one-out errors."""

import math
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

PENALTIES = tuple(10.0 ** (exponent / 2) for exponent in range(-10, 7))
"""The penalties that are tried, each times the mean variance of the features' directions."""
MAX_SOLVED = 8192
"""The largest side of the matrix whose eigenvectors are computed: the smaller of rows and features."""
ROWS_PER_CHUNK = 1024
TEMPERATURE_STEPS = 60
MATRICES_OF_TARGETS = 6
"""Matrices of the size of the targets that are in memory together."""
TRIED_SIDE = 512
"""The side of the matrix that is decomposed to estimate the time."""


class RidgeFit(NamedTuple):
    """A linear classifier `features @ weight.T + bias`, whose outputs are logits."""

    weight: Float[Tensor, "C D"]
    bias: Float[Tensor, " C"]
    leave_one_out: Float[Tensor, "N C"]
    """The logits of each row by the classifier that is fitted to all other rows."""
    penalty: float


def ridge_classifier(features: Float[Tensor, "N D"], labels: Int[Tensor, " N"], classes: int) -> RidgeFit:
    """Fit one ridge regression for each class to the targets 1 (the class) and -1 (another class).

    With centered features X and centered targets Y, the weights `(XᵀX + aI)⁻¹ XᵀY` minimize
    `|XW - Y|² + a|W|²` (Hoerl and Kennard 1970). With the hat matrix `H = X(XᵀX + aI)⁻¹Xᵀ`, the error of row
    i if the row is left out is `(y_i - ŷ_i) / (1 - h_ii)` (Allen 1974), so all candidates for the penalty `a`
    cost one singular value decomposition. The penalty with the smallest squared error is taken. The outputs
    are scaled to logits by the factor that makes the left-out rows likeliest, one number for all classes
    (temperature scaling: Guo et al. 2017).

    Raises: ValueError: there are fewer than two rows, or more rows and more features than `MAX_SOLVED`.
    """
    count, width = features.shape
    if count < 2:
        raise ValueError("a ridge classifier needs at least two rows")
    if min(count, width) > MAX_SOLVED:
        raise ValueError(f"{count:,} rows of {width:,} features are more than {MAX_SOLVED:,} of either")
    mean = features.mean(0, dtype=torch.float64)
    targets = 2.0 * F.one_hot(labels, classes).double() - 1
    target_mean = targets.mean(0)
    left, squares, to_weights = _left_singular_vectors(features - mean.to(features.dtype))
    projected = left.T @ (targets - target_mean)
    best_error, best_penalty, best_leave_one_out = torch.inf, 0.0, targets
    for relative in PENALTIES:
        penalty = relative * max(float(squares.mean()), 1e-12)
        shrink = squares / (squares + penalty)
        fitted = left @ (shrink[:, None] * projected) + target_mean
        leverage = left.square() @ shrink + 1 / count
        leave_one_out = targets - (targets - fitted) / (1 - leverage.clamp(max=1 - 1e-6))[:, None]
        error = float((leave_one_out - targets).square().mean())
        if error < best_error:
            best_error, best_penalty, best_leave_one_out = error, penalty, leave_one_out
    weight = to_weights(projected / (squares + best_penalty)[:, None]).T
    factor = logit_scale(best_leave_one_out, labels)
    bias = target_mean - weight @ mean
    dtype = features.dtype
    return RidgeFit(
        (factor * weight).to(dtype),
        (factor * bias).to(dtype),
        (factor * best_leave_one_out).to(dtype),
        best_penalty,
    )


def ridge_memory(count: int, width: int, classes: int) -> int:
    """Return the bytes that `ridge_classifier` needs for `count` rows of `width` features.

    These are the centered features, the matrix that is decomposed, its eigenvectors twice, the workspace of
    twice its size, and the left singular vectors; then the targets, and what is computed from them.
    """
    side = min(count, width)
    decomposed = 5 * side * side + (count * side if width < count else 0)
    targets = MATRICES_OF_TARGETS * count * classes + 2 * side * side
    return 4 * count * width + 8 * max(decomposed, targets)


def ridge_seconds(count: int, width: int) -> float:
    """Return about how many seconds `ridge_classifier` takes for `count` rows of `width` features.

    A smaller matrix is decomposed, and the time is that of the cube of the sides.
    """
    side = min(count, width)
    small = torch.rand(min(side, TRIED_SIDE), width, generator=torch.Generator(), dtype=torch.float64)
    torch.linalg.eigh(small[: TRIED_SIDE // 4] @ small[: TRIED_SIDE // 4].T)  # the first use is slow
    started = time.perf_counter()
    torch.linalg.eigh(small @ small.T)
    return (time.perf_counter() - started) * (side / len(small)) ** 3


def logit_scale(scores: Float[Tensor, "N C"], labels: Int[Tensor, " N"]) -> float:
    """Return the positive factor of the scores with the smallest mean `-log softmax(factor * scores)[label]`.

    One more row with any other label than its own is counted, so that no finite number of rows makes the
    classifier certain: the target of a row's label is (N + 1) / (N + 2) (Platt 1999). The loss is convex in
    the factor, so golden section search over its logarithm finds the minimum.
    """
    count, classes = scores.shape
    smoothing = classes / (classes - 1) / (count + 2)
    low, high, ratio = -4.0, 6.0, (5**0.5 - 1) / 2

    def loss(exponent: float) -> float:
        return float(F.cross_entropy(scores * math.exp(exponent), labels, label_smoothing=smoothing))

    for _ in range(TEMPERATURE_STEPS):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if loss(left) < loss(right):
            high = right
        else:
            low = left
    return math.exp((low + high) / 2)


_ToWeights = Callable[[Float[Tensor, "R C"]], Float[Tensor, "D C"]]


def _left_singular_vectors(
    features: Float[Tensor, "N D"],
) -> tuple[Float[Tensor, "N R"], Float[Tensor, " R"], _ToWeights]:
    """Return U and S² of `features = U S Vᵀ`, and a function that maps `A` to `V S A`.

    The smaller of the matrices `X Xᵀ` and `Xᵀ X` is decomposed, in double precision.
    """
    count, width = features.shape
    rows_first = count <= width
    gram = torch.zeros(min(count, width), min(count, width), dtype=torch.float64, device=features.device)
    for chunk in torch.split(features.T if rows_first else features, ROWS_PER_CHUNK):
        part = chunk.double()
        gram += part.T @ part
    squares, vectors = torch.linalg.eigh(gram)
    kept = squares > squares[-1].clamp(min=0) * count * torch.finfo(torch.float64).eps
    squares, vectors = squares[kept], vectors[:, kept]
    if rows_first:
        return vectors, squares, lambda weights: _matmul_in_chunks(features.T, vectors @ weights)
    return (
        _matmul_in_chunks(features, vectors / squares.sqrt()),
        squares,
        lambda weights: vectors @ (squares.sqrt()[:, None] * weights),
    )


def _matmul_in_chunks(first: Float[Tensor, "M K"], second: Float[Tensor, "K C"]) -> Float[Tensor, "M C"]:
    """Return the product in double precision, without a copy of all of `first`."""
    return torch.cat([chunk.double() @ second for chunk in torch.split(first, ROWS_PER_CHUNK)])
