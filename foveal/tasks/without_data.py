"""The part of a task that says what its models and batches are without data."""

from collections.abc import Mapping
from typing import Any, ClassVar


class TaskWithoutData:
    """What `foveal.create_model` and `foveal plan` ask of a task."""

    row_unit: ClassVar[str] = "tokens"
    """What the `tokens` of a batch count."""
    scored_fraction: ClassVar[float] = 1.0
    """The fraction of a row's positions that have a loss."""

    @property
    def model_sizes(self) -> tuple[str, ...] | None:
        """The sizes, beside settings, that a model without data depends on; None if the task makes no such
        model."""
        return None

    def sized_processor(self, sizes: Mapping[str, int]) -> Any:
        """Return a processor that knows only the `model_sizes`, for a model that is made without data."""
        raise NotImplementedError

    def planned_sizes(self) -> dict[str, int]:
        """Return the `model_sizes` of a model that is planned without data."""
        raise NotImplementedError

    @property
    def row_size(self) -> int | None:
        """Return what a longest row takes of a batch, in the unit of `batch_setting`; None if the task
        makes no batches without data."""
        return None

    def longest_batch(self, rows: int) -> Any:
        """Return a training batch of `rows` of the longest rows. Its numbers mean nothing."""
        raise NotImplementedError

    length_setting: ClassVar[str] = ""
    """The setting below `data` of the longest row, whose costs `foveal compare` measures; empty if rows have
    no length."""

    def decoding_start(self, batch: Any, count: int) -> Any:
        """Return the `DecodingStart` of `count` tokens that the model writes at the end of the first row of a
        `longest_batch`, or as its answer. Only tasks with a `length_setting` need it."""
        raise NotImplementedError
