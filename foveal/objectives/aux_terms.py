"""The terms that the layers of a model add to an objective, such as the load balance of experts."""

import torch

from foveal.core.result import Term
from foveal.layers.blocks.moe import MEASURED_AUX, AuxLosses


def aux_terms(weights: dict[str, float], *parts: AuxLosses) -> dict[str, Term]:
    """Return the sums of the `aux` of the parts of a model as terms. What is only measured has the
    coefficient 0."""
    names = sorted({name for part in parts for name in part})
    return {
        name: Term(
            torch.stack([part[name].sum() for part in parts if name in part]).sum(),
            weights[name],
            0.0 if name in MEASURED_AUX else 1.0,
        )
        for name in names
    }
