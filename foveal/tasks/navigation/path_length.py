"""Success weighted by path length (Anderson et al. 2018, "On evaluation of embodied navigation agents")."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def success_weighted_by_path_length(
    arrived: Bool[Tensor, " B"], shortest: Int[Tensor, " B"], steps_taken: Int[Tensor, " B"]
) -> Float[Tensor, " B"]:
    """Return `S_i l_i / max(p_i, l_i)` of each episode. The mean is SPL.

    S_i is 1 if the agent arrived, l_i the length of the shortest path, and p_i the length of the agent's
    path. For an agent that starts at the goal and stays there, the result is 1.
    """
    longer = torch.maximum(shortest, steps_taken)
    return torch.where(arrived, torch.where(longer == 0, 1.0, shortest / longer.clamp(min=1)), 0.0)
