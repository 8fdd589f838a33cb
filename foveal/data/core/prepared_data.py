"""Data that a task can train on: a processor, and the splits."""

from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from foveal.data.core.rows import SkippedRow

ProcessorT = TypeVar("ProcessorT", covariant=True)
SplitT = TypeVar("SplitT", covariant=True)


class ReusedProcessors(NamedTuple):
    """Processors reused when training starts from the encoder of an earlier run."""

    source: Any = None
    """What the encoder needs: the tokenizer of its source, or the statistics of its channels."""
    labels: tuple[str, ...] = ()
    """The classes of the earlier run, which keep their ids if the new classes are the same."""


NO_REUSE = ReusedProcessors()


@dataclass(frozen=True)
class PreparedData(Generic[ProcessorT, SplitT]):
    """A processor (tokenizers, labels ...) and the splits. A split that does not exist is None.

    `facts` can be written as JSON: `source`, and in `parts` the sha256 and the sizes of each split.
    """

    processor: ProcessorT
    train: SplitT
    valid: SplitT | None
    test: SplitT | None
    facts: dict[str, Any]
    skipped: tuple[SkippedRow, ...] = ()
    """The rows that can't be used, of all splits."""

    @property
    def held_out(self) -> SplitT | None:
        """The split for the reported results: the test split, or the validation split if there is no test."""
        return self.valid if self.test is None else self.test
