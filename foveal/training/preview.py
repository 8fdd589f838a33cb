"""A sample that the current model generates between two steps."""

import torch
from torch import nn

from foveal.core.errors import RunFailed, UserError
from foveal.core.runtime import seed_everything
from foveal.training.protocols import Objective


def preview(model: nn.Module, objective: Objective, seed: int, step: int) -> str | None:
    """Return what the current model generates, or why it generates nothing. A failure does not stop the
    training."""
    seed_everything(seed, "preview", step)
    model.eval()
    with torch.no_grad():
        try:
            return objective.preview(step)
        except (RunFailed, UserError) as failure:
            return f"no preview: {failure}"
