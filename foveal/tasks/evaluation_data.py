"""What a run is measured on, and what of it is shown."""

from typing import Any, NamedTuple

from foveal.core.errors import UserError
from foveal.data.core.examples import Examples
from foveal.data.core.split_data import evenly_spaced
from foveal.tasks.session import LoadedRun, prepare_run_data, task_of
from foveal.ui.console import log

EXAMPLES_SHOWN = 6
"""So many held-out examples are shown, where none are asked for."""


class EvaluationData(NamedTuple):
    """Data, what they are called, and their facts."""

    split_data: Any
    split: str
    facts: dict[str, Any]


def load_evaluation_data(loaded: LoadedRun, data: str | None, option_hint: str) -> EvaluationData:
    """All of `data`; without it the test part of the run's own, or the validation.

    UserError if the run was trained on all it had; `option_hint` tells where other data are named.
    """
    if data is not None:
        part, facts = task_of(loaded.config).prepare_held_out(loaded.config, data, loaded.processor, log)
        return EvaluationData(part, data, facts)
    prepared = prepare_run_data(loaded.run, log)
    if prepared.held_out is None:
        raise UserError(f"{loaded.run.path}: trained without held-out data: name some {option_hint}")
    name = "valid" if prepared.test is None else "test"
    return EvaluationData(prepared.held_out, name, prepared.facts["parts"][name])


def load_evaluation_examples(loaded: LoadedRun) -> tuple[Examples, list[str], list[Any]]:
    """A few examples, what they are called, and what is right of them."""
    part = load_evaluation_data(loaded, None, "with --query").split_data
    rows = evenly_spaced(len(part), EXAMPLES_SHOWN)
    return (
        part.examples.subset(rows),
        [part.sources[row] for row in rows],
        [part.references[row] for row in rows],
    )
