"""The hidden attention of Mamba (Ali et al. 2024, section 3): the scan of each channel e is a matrix.

    y_t = sum_(s <= t) M_ts u_s + skip u_t
    M_ts = sum_n C_tn exp(A_en sum_(s < k <= t) delta_k) delta_s B_sn

Weights may be negative, and rows do not sum to 1.
"""

import torch
from jaxtyping import Float
from torch import Tensor


def scan_matrices(
    delta: Float[Tensor, "T E"], A: Float[Tensor, "E N"], B: Float[Tensor, "T N"], C: Float[Tensor, "T N"]
) -> Float[Tensor, "E T T"]:
    """Return the matrix of each channel."""
    delta, A, B, C = (x.double() for x in (delta, A, B, C))
    time = delta.cumsum(0).T
    elapsed = (time[:, :, None] - time[:, None, :]).clamp(min=0)
    matrices = torch.zeros_like(elapsed)
    for n in range(A.shape[1]):
        matrices += (elapsed * A[:, n, None, None]).exp() * (C[:, n, None] * B[:, n])
    return (matrices * delta.T[:, None]).tril().float()
