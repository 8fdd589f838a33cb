"""One example that a view looks at: a held-out row, a row of other data, or a typed text."""

from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.terminal_text import counted
from foveal.core.whole_number import WholeNumber
from foveal.data.text.unknown_tokens import log_unknown_source
from foveal.inspection.run_protocols import InspectedRun

MAX_NAME_LENGTH = 60
"""Characters of a typed text that its name has."""


@dataclass(frozen=True)
class InputOptions:
    data: str | None = None
    """Other data than the run's held-out part."""
    row: WholeNumber = 0
    """The row that is shown, counted from 0; of a language model's text, the window of its context length."""
    text: str | None = None
    """A text to show in place of a row."""


@runtime_checkable
class ScoringObjective(Protocol):
    """The methods of an objective that scores given outputs, with gradients where they are on."""

    def log_probabilities(self, batch: Any) -> Float[Tensor, " N"]:
        """Return the log-probability in nats of each scored target of a batch, each given those before it."""

    def with_own_answer(self, batch: Any) -> Any:
        """Return the batch with the model's own answer as the target."""


@dataclass(frozen=True)
class ChosenInput:
    """One example as the model gets it, as a batch of one row.

    `source` names the positions that the model reads, in order: tokens as text, with their white space and
    special tokens such as `<stop>`; frames and steps by their time or number. It is empty for an image alone.
    `target` names the scored targets, in order: the label, the tag of each word, or the tokens. A language
    model reads `source[t]` and predicts `target[t]`; the decoder of an encoder reads `<start>` and the
    targets before.
    """

    batch: Any
    source: tuple[str, ...]
    target: tuple[str, ...]
    objective: ScoringObjective
    reference: str | None = None
    """The reference as a text; None if it is unknown, so that the target is the model's own answer."""
    image: UInt8[np.ndarray, "H W 3"] | None = None
    """The pixels that the model reads."""
    name: str = ""
    """Where the example is from, such as `valid, row 3`."""

    def position_names(self, count: int) -> tuple[str, ...]:
        """Return the names of the `count` positions of a layer: those of the source, those that a decoder
        reads, or numbers."""
        for names in (self.source, ("<start>", *self.target[:-1])):
            if len(names) == count:
                return names
        return tuple(f"position {place}" for place in range(count))

    def log_probabilities(self, batch: Any = None) -> Float[Tensor, " N"]:
        """Run the model on the batch, or on a changed one, and return the log-probability in nats of each
        target, given the targets before it.

        Gradients are computed where they are on, and the model's weights want them.
        """
        return self.objective.log_probabilities(self.batch if batch is None else batch)

    def total(self) -> float:
        """Return the sum of the log-probabilities of all targets, in nats."""
        with torch.inference_mode():
            return float(self.log_probabilities().sum())


@runtime_checkable
class InputTask(Protocol):
    """The methods of a task whose examples can be chosen one by one."""

    @property
    def name(self) -> str: ...

    @property
    def reads_text(self) -> bool:
        """Return whether a text is all that the model reads."""

    def unlabeled_split(self, data: str, log: Log) -> Any:
        """Return all of `data` as a held-out split, without references."""

    def count_inputs(self, split: Any) -> int:
        """Return the number of rows of a held-out split that can be chosen."""

    def input_of_row(self, split: Any, row: int) -> ChosenInput:
        """Return a row of a held-out split."""

    def input_of_text(self, text: str) -> ChosenInput:
        """Return a typed text, which is not empty.

        Raises: UserError: the text is too long, or has no known characters.
        """


def why_no_input(run: InspectedRun) -> str:
    """Return why a run's inputs can't be chosen one by one; an empty text if they can."""
    if isinstance(run.task, InputTask) and isinstance(run.objective, ScoringObjective):
        return ""
    return f"the inputs of this run's task ({run.task.name}) can't be shown one by one"


def choose_input(run: InspectedRun, options: InputOptions, log: Log) -> ChosenInput:
    """Return the example that the options name.

    Raises: UserError: there is no such row, the text is empty or too long, or the run reads no text.
    """
    if options.text is not None:
        return _typed_text(run, options, options.text, log)
    split, name = input_split(run, options.data, log)
    count = run.task.count_inputs(split)
    if not 0 <= options.row < count:
        raise UserError(f"--row {options.row}: {name} has {counted(count, 'row')}, from row 0 on")
    chosen: ChosenInput = run.task.input_of_row(split, options.row)
    return replace(chosen, name=f"{name}, row {options.row}")


def _typed_text(run: InspectedRun, options: InputOptions, text: str, log: Log) -> ChosenInput:
    if options.data is not None or options.row:
        raise UserError("--text is the input: leave out --data and --row")
    if not run.task.reads_text:
        raise UserError(f"--text: this run reads more than a text (task {run.task.name}): name --data FILE")
    if not text.strip():
        raise UserError("--text is empty: write a text")
    chosen: ChosenInput = run.task.input_of_text(text)
    log_unknown_source("--text", getattr(run.processor, "source", run.processor), text, log)
    line = " ".join(text.split())
    return replace(chosen, name=line if len(line) <= MAX_NAME_LENGTH else f"{line[:MAX_NAME_LENGTH]}…")


def input_split(run: InspectedRun, data: str | None, log: Log) -> tuple[Any, str]:
    """Return the held-out split and its name. Other data need no references."""
    try:
        split, name, _ = run.held_out(data, "with --data", log)
    except UserError:
        if data is None:
            raise
        return run.task.unlabeled_split(data, log), data
    return split, name
