"""A source: what a model reads. It knows how to read rows, process, encode, batch, save and load itself."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from foveal.config import DataConfig
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Column, Examples, RaggedArray, RowIndices
from foveal.data.core.length_buckets import BucketedEvalBatches, BucketedTrainBatches, collate_examples
from foveal.data.core.prepared_data import ReusedProcessors
from foveal.data.core.rows import Row, SkippedRow
from foveal.data.files.data_part import DataPart

if TYPE_CHECKING:
    from foveal.data.pairs.target import Target

ProcessorT = TypeVar("ProcessorT")


class Source(ABC, Generic[ProcessorT]):
    """What a model reads, by means of a processor that is fitted to the rows to train on.

    A row has the field `source`: a text or words, else the sha256 of what was read.
    """

    settings: tuple[str, ...]
    """The settings that the source reads."""
    same_label: ClassVar[str]
    """The words before a label that all of `{count}` sources to train on have."""
    label_hint: ClassVar[str] = ""
    """How a user names another column of labels."""
    place: ClassVar[str] = ""
    """What has a label of its own where each place has one."""
    has_tokenizer: ClassVar[bool] = False
    """Whether the source is made of tokens."""

    def shared_tokenizer(self, processor: ProcessorT, config: DataConfig) -> Any:
        """Return the tokenizer that targets have too; None if they have one of their own."""
        return None

    @abstractmethod
    def read(
        self, part: DataPart, target: "Target[Any]", config: DataConfig, skipped: list[SkippedRow]
    ) -> Iterator[Row]:
        """Read the rows of a part with their targets. Rows that can't be used are put into the list."""

    @abstractmethod
    def read_unlabeled(self, part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
        """Read rows without targets. The field `source` is what the row is called."""

    @abstractmethod
    def fit(
        self, data: str, rows: list[Row], config: DataConfig, reused: ReusedProcessors
    ) -> tuple[ProcessorT, list[Row]]:
        """Return a processor for the rows to train on, or the one that is `reused`; and the rows it can read.

        Raises: UserError: it can read none.
        """

    @abstractmethod
    def files(self, processor: ProcessorT, target_processor: Any) -> dict[str, bytes]:
        """Return the files of a processor, by their names in the folder of a run."""

    @abstractmethod
    def load(self, folder: Path) -> ProcessorT:
        """Read the files of a processor."""

    @abstractmethod
    def encode(self, row: Row, processor: ProcessorT, config: DataConfig) -> Any | str:
        """Return what a model reads of a row with a target; or why the row can't be used."""

    def encode_unlabeled(self, row: Row, processor: ProcessorT, config: DataConfig) -> Any | str:
        """Return what a model reads of a row without a target; or why the row can't be used."""
        return self.encode(row, processor, config)

    def examples(
        self, rows: list[Row], values: list[Any], processor: ProcessorT, columns: Mapping[str, Column]
    ) -> Any:
        """Return the encoded `values` of rows as examples, with the `columns` of their targets."""
        return Examples({"source": RaggedArray.from_rows(values), **columns})

    def places(self, value: Any) -> NDArray[np.int64]:
        """Return where a model finds each place of an encoded row."""
        return np.arange(len(value))

    def length_ratio(self, rows: list[Row], processor: ProcessorT, target_tokens: Any) -> float:
        """Return how many tokens a target has for each token or frame of its source; 0 if that says nothing.

        `target_tokens` is a function from a row to the number of its target's tokens.
        """
        return 0.0

    def check_labels(self, data: str, labels: Sequence[str], rows: list[Row], config: DataConfig) -> None:
        """Check the labels of the rows to train on.

        Raises: UserError: there are far too many.
        """

    @abstractmethod
    def names(self, rows: list[Row]) -> list[str]:
        """Return what each row is called."""

    def identity(self, row: Row) -> Any:
        """Return what JSON can write of a row's source, equal for equal sources."""
        return row.fields["source"]

    def hashed(self, row: Row, reference: Any) -> Any:
        """Return what the sha256 of a split is of: what JSON can write of a row and its target."""
        return self.identity(row), reference

    def content_hashes(self, rows: list[Row]) -> list[str]:
        """Return the sha256 of what each source was read from; none where sources are texts."""
        return [row.fields["source"] for row in rows]

    def lengths(self, rows: list[Row], examples: Any) -> list[int]:
        """Return the length of each source, for a breakdown; none where all are seen at one size."""
        lengths: list[int] = examples.lengths("source")
        return lengths

    @abstractmethod
    def sizes(self, rows: list[Row], examples: Any) -> dict[str, int]:
        """Return how much there is of the sources, beside their number."""

    def train_batches(self, examples: Any, config: DataConfig, seed: int) -> Any:
        """Return the batches of training, micro-batches of the configured size."""
        return BucketedTrainBatches(examples, config.batch_tokens, seed)

    def eval_batches(self, examples: Any, config: DataConfig) -> Any:
        """Return batches that hold every example once."""
        return BucketedEvalBatches(examples, config.batch_tokens)

    def collate(self, examples: Any, rows: RowIndices) -> ExampleBatch:
        """Return the examples `rows` (B,) as they are seen when they are not trained on."""
        return collate_examples(examples, rows)
