"""What a run is measured on, and what of it is shown."""

from typing import Any, NamedTuple

from foveal.core.errors import UserError
from foveal.data.core.examples import Examples
from foveal.data.core.split_data import evenly
from foveal.tasks.session import Loaded, kind_of, prepare_again
from foveal.ui.console import say

SHOWN = 6
"""So many held-out examples are shown, where none are asked for."""


class HeldOut(NamedTuple):
    """Data, what they are called, and their facts."""

    part: Any
    name: str
    facts: dict[str, Any]


def held_out(loaded: Loaded, data: str | None, how: str) -> HeldOut:
    """All of `data`; without it the test part of the run's own, or the validation.

    UserError if the run was trained on all it had; `how` tells where other data are named.
    """
    if data is not None:
        part, facts = kind_of(loaded.config).prepare_held_out(loaded.config, data, loaded.inputs, say)
        return HeldOut(part, data, facts)
    prepared = prepare_again(loaded.run, say)
    if prepared.held_out is None:
        raise UserError(f"{loaded.run.path}: trained without held-out data: name some {how}")
    name = "valid" if prepared.test is None else "test"
    return HeldOut(prepared.held_out, name, prepared.facts["parts"][name])


def some_held_out(loaded: Loaded) -> tuple[Examples, list[str], list[Any]]:
    """A few examples, what they are called, and what is right of them."""
    part = held_out(loaded, None, "with --query").part
    rows = evenly(len(part), SHOWN)
    return part.examples.some(rows), [part.sources[row] for row in rows], [part.answers[row] for row in rows]
