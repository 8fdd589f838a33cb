"""Data as a task has it: the processors of its inputs, and the parts."""

from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from foveal.data.core.rows import Aside

Inputs = TypeVar("Inputs", covariant=True)
Data = TypeVar("Data", covariant=True)


class Taken(NamedTuple):
    """What new inputs begin with of those of a run, whose encoder is to be used."""

    source: Any = None
    """What the encoder needs: the tokenizer of what it reads, or the statistics of its channels."""
    labels: tuple[str, ...] = ()
    """Its classes, which keep their numbers if the new ones are the same."""


NOTHING = Taken()


@dataclass(frozen=True)
class Prepared(Generic[Inputs, Data]):
    """Ready to train on: `inputs` are tokenizers, labels and the like; a part that was not cut is None.

    `facts` is ready for JSON: `source`, and for each part in `parts` its sha256 and its sizes.
    """

    inputs: Inputs
    train: Data
    valid: Data | None
    test: Data | None
    facts: dict[str, Any]
    aside: tuple[Aside, ...] = ()
    """The rows that can't be used."""

    @property
    def held_out(self) -> Data | None:
        """What a figure is of: the test part, else the validation, if there is one."""
        return self.valid if self.test is None else self.test
