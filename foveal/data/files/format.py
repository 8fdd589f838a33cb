"""What a form of examples is: how rows are read, and how they become numbers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from foveal.config import DataConfig
from foveal.data.core.prepared_data import NO_REUSE, ReusedProcessors
from foveal.data.core.rows import Row, SkippedRow
from foveal.data.core.split_data import SplitData
from foveal.data.files.data_part import DataPart


@runtime_checkable
class DataFormat(Protocol):
    """A form of examples, one file of `foveal.data`. `Any` stands for its own inputs and examples."""

    def read(self, part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
        """The usable rows at a path, the others put into the list; the field `source` is what is read."""

    def make_processor(
        self, data: str, rows: list[Row], config: DataConfig, reused: ReusedProcessors = NO_REUSE
    ) -> Any:
        """Tokenizers, labels and the like, from the rows to train on, but for what is taken of a run's.

        `files()` is what is kept of them.
        """

    def encode(
        self, rows: list[Row], processor: Any, config: DataConfig, skipped: list[SkippedRow]
    ) -> SplitData[Any]:
        """Rows that don't fit the inputs are put into the list."""

    def load_processor(self, folder: Path) -> Any:
        """What the inputs' `files()` gave, below a run's folder."""

    def read_unlabeled(self, part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
        """Sources without answers, the others put into the list."""

    def encode_unlabeled(
        self, rows: list[Row], processor: Any, config: DataConfig, skipped: list[SkippedRow]
    ) -> tuple[list[Row], Any]:
        """Those that the model can read, and their columns. The others are put into the list."""
