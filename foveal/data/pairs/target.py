"""The target of a task: its column, its classes or tokens, and its files."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from torch import Tensor

from foveal.config import DataConfig
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Column
from foveal.data.core.fields import Fields, as_texts
from foveal.data.core.prepared_data import ReusedProcessors
from foveal.data.core.rows import Row
from foveal.data.pairs.source import Source

ProcessorT = TypeVar("ProcessorT")


@dataclass(frozen=True)
class FittingData:
    """What a target's processor is fitted to."""

    data: str
    """The name of DATA, for errors."""
    rows: Sequence[Row]
    """The training rows."""
    usable: Sequence[Row]
    """The training rows that the source can read."""
    source: Source[Any]
    source_processor: Any
    config: DataConfig
    reused: ReusedProcessors


class Target(ABC, Generic[ProcessorT]):
    """The output of a model for a source, with a processor that is fitted to the training rows."""

    settings: tuple[str, ...]
    """The settings that the target reads."""
    field: ClassVar[str] = ""
    """The field of a row with the target; empty without a target."""
    each_place: ClassVar[bool] = False
    """Whether each place of a source has its own label."""
    is_class: ClassVar[bool] = False
    """Whether the name of a folder can be the target of all files in the folder."""
    is_text: ClassVar[bool] = False
    """Whether the field is a text to write."""
    is_stored: ClassVar[bool] = False
    """As of a source."""
    model_sizes: ClassVar[tuple[str, ...] | None] = None
    """The sizes that a head for the target depends on; None if it needs data."""

    def column(self, config: DataConfig) -> str:
        """Return the name of the target's column in a table."""
        return self.field

    def parse(self, column: str, value: Any) -> Fields | str:
        """Return the value of a table's column as a row's field, or the reason why it can't be used."""
        texts = as_texts({column: value})
        return texts if isinstance(texts, str) else {self.field: texts[column].strip()}

    def label_list(self, row: Row) -> list[str]:
        """Return the labels of a row: one, or one for each place; none for a target without classes."""
        return []

    def missing_error(self, row: Row) -> str:
        """Return the reason why a row's target says that there is none. Empty if it says no such thing."""
        return ""

    @abstractmethod
    def fit(self, fitting: FittingData) -> ProcessorT:
        """Return a processor fitted to the training rows."""

    def sized_processor(self, sizes: Mapping[str, int]) -> Any:
        """Return a processor that knows only the `model_sizes`, for a model that is made without data."""
        raise NotImplementedError

    @abstractmethod
    def files(self, processor: ProcessorT, source_processor: Any) -> dict[str, bytes]:
        """Return the contents of a processor's files by their names in the run folder."""

    @abstractmethod
    def load(self, folder: Path, source_processor: Any) -> ProcessorT:
        """Read the files of a processor."""

    @abstractmethod
    def encode(self, row: Row, processor: ProcessorT, config: DataConfig) -> Any | str:
        """Encode the target of a row, or return the reason why the row can't be used."""

    @abstractmethod
    def columns(self, values: list[Any]) -> dict[str, Column]:
        """Return the columns of a batch with the encoded `values` of rows."""

    def references(self, rows: Sequence[Row]) -> list[Any]:
        """Return the targets of rows as in the data."""
        return [row.fields[self.field] for row in rows]

    def sizes(self, rows: Sequence[Row], values: list[Any]) -> dict[str, int]:
        """Return sizes of the targets other than their number."""
        return {}


class TargetProcessor(ABC):
    """The fitted part of a target."""

    labels: tuple[str, ...] = ()
    """The classes, in the order of their ids; none for a target without classes."""

    @abstractmethod
    def caption(self, columns: Mapping[str, Tensor]) -> str:
        """Return the target of an example as text. `columns` are the example's columns of a batch."""

    def position_names(self, batch: ExampleBatch) -> tuple[str, ...]:
        """Return the name of each scored target of the only row of a batch."""
        return ()
