"""The state of a loader with `state_dict` and `load_state_dict`, such as torchdata's StatefulDataLoader."""

import json
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from foveal.core.log import Log
from foveal.core.state import State


def has_state(source: Iterable[Any]) -> bool:
    """Return whether a source stores and restores its own place."""
    return hasattr(source, "state_dict") and hasattr(source, "load_state_dict")


def loader_state(source: Iterable[Any], log: Log) -> State:
    """Return the state of a loader; None if it has none, or one that only pickle could store."""
    if not has_state(source):
        return None
    state = source.state_dict()  # type: ignore[attr-defined]
    if strange := _not_storable(state):
        log(
            f"train.state_dict() has {strange}, which can't be stored without pickle: a resume reads the "
            "batches of the epoch again"
        )
        return None
    return state


def load_loader_state(source: Any, state: State) -> None:
    """Bring a loader into a state of its own."""
    source.load_state_dict(state)


def generator_of(source: Iterable[Any]) -> torch.Generator | None:
    """Return the random generator of a DataLoader that shuffles by its own, if it has one."""
    for owner in (source, getattr(source, "sampler", None)):
        generator = getattr(owner, "generator", None)
        if isinstance(generator, torch.Generator):
            return generator
    return None


def _not_storable(state: Any) -> str:
    """Return the type of the first part of a state that is neither a tensor nor JSON; else an empty text."""
    if isinstance(state, dict):
        keys = next((f"the key {key!r}" for key in state if not isinstance(key, str)), "")
        return keys or next(filter(None, map(_not_storable, state.values())), "")
    if type(state) in (tuple, list):
        return next(filter(None, map(_not_storable, state)), "")
    if isinstance(state, Tensor):
        return ""
    try:
        json.dumps(state, allow_nan=False)
    except (TypeError, ValueError):
        return f"a {type(state).__name__}"
    return ""
