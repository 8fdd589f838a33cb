"""A target: what a model gives for a source. It knows its column, its classes or tokens, and its files."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from torch import Tensor

from foveal.config import DataConfig
from foveal.data.core.examples import Column
from foveal.data.core.fields import Fields
from foveal.data.core.prepared_data import ReusedProcessors
from foveal.data.core.rows import Row
from foveal.data.pairs.source import Source

ProcessorT = TypeVar("ProcessorT")


class Target(ABC, Generic[ProcessorT]):
    """What a model gives for a source, by means of a processor that is fitted to the rows to train on."""

    settings: tuple[str, ...]
    """The settings that the target reads."""
    field: ClassVar[str] = ""
    """The field of a row that has the target; empty where there is none."""
    each_place: ClassVar[bool] = False
    """Whether each place of a source has a label of its own."""
    is_class: ClassVar[bool] = False
    """Whether a folder's name may be the target of all files in the folder."""

    @abstractmethod
    def column(self, config: DataConfig) -> str:
        """Return the name of the target's column in a table."""

    @abstractmethod
    def parse(self, column: str, value: Any) -> Fields | str:
        """Return the target that a table has in a column, as a row's field; or why it can't be used."""

    @abstractmethod
    def fit(
        self,
        data: str,
        rows: list[Row],
        usable: list[Row],
        source: Source[Any],
        source_processor: Any,
        config: DataConfig,
        reused: ReusedProcessors,
    ) -> ProcessorT:
        """Return a processor for the rows to train on; the source can read those that are `usable`."""

    @abstractmethod
    def files(self, processor: ProcessorT, source_processor: Any) -> dict[str, bytes]:
        """Return the files of a processor, by their names in the folder of a run."""

    @abstractmethod
    def load(self, folder: Path, source_processor: Any) -> ProcessorT:
        """Read the files of a processor."""

    @abstractmethod
    def encode(self, row: Row, processor: ProcessorT, config: DataConfig) -> Any | str:
        """Return the target of a row in numbers; or why the row can't be used."""

    @abstractmethod
    def columns(self, values: list[Any]) -> dict[str, Column]:
        """Return the columns of a batch that have the encoded `values` of rows."""

    def references(self, rows: list[Row]) -> list[Any]:
        """Return the targets of rows as they are given."""
        return [row.fields[self.field] for row in rows]

    def sizes(self, rows: list[Row], values: list[Any]) -> dict[str, int]:
        """Return how much there is of the targets, beside their number."""
        return {}


class TargetProcessor(ABC):
    """The fitted part of a target."""

    @abstractmethod
    def caption(self, columns: Mapping[str, Tensor]) -> str:
        """Return the target of one example in words; `columns` are those of the example in a batch."""
