"""The tokens of a text that a score f(e_1 ... e_T) of their embeddings depends on (Li et al. 2016).

    gradient x embedding   e_t . df/de_t              to first order what e_t adds to f
    removal                f(e) - f(e with e_t = 0)   what it really adds

If f is linear in the embeddings, both are the same.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

TokenScore = Callable[[int], Float[Tensor, " B"]]
"""Runs the model on B copies of the same text, and returns their scores."""
BATCH_SIZE = 32
"""Texts with a token removed that are scored together."""


@contextmanager
def changed_embeddings(embedding: nn.Module, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Return a context in which the embeddings are changed before the model reads them."""

    def hook(_: nn.Module, inputs: Any, output: Tensor) -> Tensor:
        return change(output)

    handle = embedding.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


def gradient_times_embedding(score: TokenScore, embedding: nn.Module) -> Float[Tensor, " T"]:
    """Return the product of the embedding and its gradient for each token."""
    leaves: list[Tensor] = []

    def to_leaf(vectors: Tensor) -> Tensor:
        leaves.append(vectors.detach().requires_grad_())
        return leaves[0]

    with changed_embeddings(embedding, to_leaf), torch.enable_grad():
        (gradient,) = torch.autograd.grad(score(1).sum(), leaves[0])
    return (leaves[0] * gradient).sum(-1)[0].detach()


def scores_without(
    score: TokenScore, embedding: nn.Module, removed: Bool[Tensor, "N T"]
) -> Float[Tensor, " N"]:
    """Return the scores of N copies of a text, with the embeddings of the `removed` tokens 0."""
    parts = []
    for part in torch.split(removed, BATCH_SIZE):
        with changed_embeddings(embedding, partial(torch.mul, ~part[:, :, None])), torch.no_grad():
            parts.append(score(len(part)))
    return torch.cat(parts)


def removal(score: TokenScore, embedding: nn.Module, count: int, device: torch.device) -> Float[Tensor, " T"]:
    """Return the loss of score without each of the `count` tokens of a text."""
    each = torch.eye(count + 1, count, dtype=torch.bool, device=device)  # the last row removes nothing
    scores = scores_without(score, embedding, each)
    return scores[-1] - scores[:-1]
