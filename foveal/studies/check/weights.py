"""The laws of weights: what is stored is the model, and tied tables stay one."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from foveal.laws.law import require, require_equal, reset_all_parameters
from foveal.store.sealed import load_weights, open_tensors, seal_tensors, unique_state_dict
from foveal.studies.check.law import Law, law_without_length

NAME = "the stored weights"


def laws_of_weights(
    model: nn.Module,
    another: Callable[[], nn.Module] | None,
    logits: Callable[[Any], Tensor],
    ties_tables: bool,
) -> Iterator[Law]:
    """Yield the laws of the weights of a model. `another` makes it with other weights."""
    if another is not None:
        yield law_without_length("stored weights are the model", partial(_stored, model, another, logits))
    reason = "" if ties_tables else "the config ties none"
    yield Law("tied tables are one", lambda path, length: _one_table(model), reason=reason)
    yield law_without_length(
        "reset_parameters fills everything", lambda: reset_all_parameters(deepcopy(model))
    )


@torch.no_grad()
def _stored(model: nn.Module, another: Callable[[], nn.Module], logits: Callable[[Any], Tensor]) -> None:
    """Check that another model that loads the stored weights has the same logits, bit for bit.

    Raises: LawBroken: it has others.
    """
    stored = seal_tensors(unique_state_dict(model), {})
    loaded = another().eval()
    load_weights(loaded, open_tensors(stored, NAME)[0], NAME)
    require_equal(logits(loaded), logits(model), "a model that loads the stored weights has other logits")


def _one_table(model: Any) -> None:
    """Check that the projection to the vocabulary and the embedding are one parameter.

    Raises: LawBroken: they are two.
    """
    head = getattr(model, "head", model)
    embedding = head.embedding if hasattr(head, "embedding") else model.encoder.embedding
    problem = "the projection has weights of its own, and the config ties them to the embedding"
    require(head.projection.weight is embedding.table, problem)
