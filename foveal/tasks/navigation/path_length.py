"""How good walks to a goal were (Anderson et al. 2018, "On evaluation of embodied navigation agents")."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def success_weighted_by_path_length(
    arrived: Bool[Tensor, " B"], shortest: Int[Tensor, " B"], steps_taken: Int[Tensor, " B"]
) -> Float[Tensor, " B"]:
    """`S_i l_i / max(p_i, l_i)` of each walk, whose mean is SPL.

    S_i is 1 if it arrived, l_i the length of the shortest way, p_i of the one that was taken. Who begins at
    the goal and stays there has 1.
    """
    most = torch.maximum(shortest, steps_taken)
    return torch.where(arrived, torch.where(most == 0, 1.0, shortest / most.clamp(min=1)), 0.0)
