"""Attention rollout (Abnar and Zuidema 2020, section 3).

With W_l the mean of the weights of layer l's heads, and I for the residual connection:

    R_0 = I        R_l = A_l R_(l-1)        A_l = (W_l + I) / 2, or W_l without a residual

Each row of R says from which inputs a position is mixed, if vectors only were averaged; it sums to 1.
"""

from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor


def roll_out(layers: Iterable[tuple[Float[Tensor, "H T T"], bool]]) -> Float[Tensor, "T T"]:
    """Return the rollout of layers, the first of which reads the inputs. Each is its weights and whether it
    has a residual connection. A position that sees nothing keeps itself."""
    result: Tensor | None = None
    for weights, has_residual in layers:
        mean = weights.double().mean(0)
        identity = torch.eye(len(mean), dtype=mean.dtype)
        mixed = mean + identity if has_residual else mean
        sums = mixed.sum(1, keepdim=True)
        mixed = torch.where(sums > 0, mixed / sums.clamp(min=1e-30), identity)
        result = mixed if result is None else mixed @ result
    if result is None:
        raise ValueError("there are no layers to roll out")
    return result.float()
