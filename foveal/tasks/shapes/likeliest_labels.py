"""The likeliest labels of each place, from logits."""

import torch
from jaxtyping import Float
from torch import Tensor

from foveal.core.errors import RunFailed

LOGITS_SORTED = 1 << 21
"""Logits that are sorted at once."""
LikeliestLabels = list[tuple[int, float]]
"""The ids and probabilities of the likeliest labels of a place, the likeliest first."""


def likeliest_labels(logits: Float[Tensor, "P C"], top: int) -> list[LikeliestLabels]:
    """Return the `top` likeliest labels of each place. Of equally likely labels the first one comes first.

    Places are sorted in chunks, so that all orders of many classes are never in memory together.

    Raises: RunFailed: a logit is not a number. (A label that a row does not have has the logit -inf.)
    """
    likeliest: list[LikeliestLabels] = []
    for chunk in torch.split(logits, max(1, LOGITS_SORTED // logits.shape[1])):
        ids = chunk.sort(dim=1, descending=True, stable=True).indices[:, :top]
        shares = chunk.softmax(1).gather(1, ids)
        if not shares.isfinite().all():
            raise RunFailed("the model's output is not finite (NaN or infinite): these weights can't predict")
        pairs = zip(ids.tolist(), shares.tolist(), strict=True)
        likeliest += [[*zip(*pair, strict=True)] for pair in pairs]
    return likeliest
