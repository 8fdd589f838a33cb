"""Data as a task has it: the processors of its inputs, and the parts."""

from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from foveal.data.core.rows import SkippedRow

ProcessorT = TypeVar("ProcessorT", covariant=True)
SplitT = TypeVar("SplitT", covariant=True)


class ReusedProcessors(NamedTuple):
    """What new inputs begin with of those of a run, whose encoder is to be used."""

    source: Any = None
    """What the encoder needs: the tokenizer of what it reads, or the statistics of its channels."""
    labels: tuple[str, ...] = ()
    """Its classes, which keep their numbers if the new ones are the same."""


NO_REUSE = ReusedProcessors()


@dataclass(frozen=True)
class PreparedData(Generic[ProcessorT, SplitT]):
    """Ready to train on: `processor` are tokenizers, labels and the like; a part that was not cut is None.

    `facts` is ready for JSON: `source`, and for each part in `parts` its sha256 and its sizes.
    """

    processor: ProcessorT
    train: SplitT
    valid: SplitT | None
    test: SplitT | None
    facts: dict[str, Any]
    skipped: tuple[SkippedRow, ...] = ()
    """The rows that can't be used."""

    @property
    def held_out(self) -> SplitT | None:
        """What a figure is of: the test part, else the validation, if there is one."""
        return self.valid if self.test is None else self.test
