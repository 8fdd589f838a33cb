"""Muon, an optimizer whose updates are the momentum with all singular values close to 1 (Jordan 2024)."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from foveal.core.runtime import has_fast_bfloat16
from foveal.distributed.placement import WHOLE_WEIGHTS, Placement
from foveal.training.update_rules import ParameterGroups, UpdateRule

NEWTON_SCHULZ_COEFFICIENTS = 3.4445, -4.7750, 2.0315
"""Coefficients of the polynomial with the steepest slope at zero. It brings singular values to 0.7 .. 1.2,
not to 1."""
NEWTON_SCHULZ_STEPS, EPSILON = 5, 1e-7


class Muon(UpdateRule):
    """`m += (1 - momentum) (g - m)`, `w -= lr (decay w + 0.2 sqrt(max(D, E)) orthogonalize(u))`.

    `u = g + momentum (m - g)` is Nesterov momentum. Matrices have the shape (D, E). Filters (D, C, k, k) are
    treated as (D, C k^2).

    The factor gives an update the size of AdamW's, so that a single learning rate serves both (Liu et al.
    2025, 2.2). The optimizer equals torch's Muon except for the precision: matrix products are in bfloat16
    only if the hardware supports bfloat16.
    """

    def __init__(self, groups: ParameterGroups, momentum: float, placement: Placement = WHOLE_WEIGHTS):
        super().__init__(groups)
        self.momentum, self.placement = momentum, placement

    def update(self, weights: list[Tensor], gradients: list[Tensor], lr: float, decay: float) -> None:
        for weight, gradient in zip(weights, gradients, strict=True):
            state = self.moments(weight, "momentum_buffer")
            mean = state["momentum_buffer"].lerp_(gradient, 1 - self.momentum)
            whole = self.placement.whole(gradient.lerp(mean, self.momentum), weight)
            direction = whole.flatten(1)
            update = orthogonalize(direction, has_fast_bfloat16(weight.device)).view_as(whole)
            weight.mul_(1 - lr * decay)
            own = self.placement.own(update, weight)
            rate = min(lr * 0.2 * math.sqrt(max(direction.shape)), torch.finfo(torch.float32).max)
            weight.add_(own, alpha=-rate)


def orthogonalize(x: Float[Tensor, "D E"], low_precision: bool) -> Float[Tensor, "D E"]:
    """Return approximately `U V^T` of `x = U S V^T`.

    The five Newton-Schulz steps are `x <- a x + (b G + c G^2) x` with `G = x x^T`, in bfloat16 if
    `low_precision`.
    """
    y = x.bfloat16() if low_precision else x.clone()
    tall = x.shape[0] > x.shape[1]
    y = y.T if tall else y
    y.div_(y.norm().clamp(min=EPSILON))
    a, b, c = NEWTON_SCHULZ_COEFFICIENTS
    for _ in range(NEWTON_SCHULZ_STEPS):
        gram = y @ y.T
        y = torch.addmm(y, torch.addmm(gram, gram, gram, beta=b, alpha=c), y, beta=a)
    return y.T if tall else y
