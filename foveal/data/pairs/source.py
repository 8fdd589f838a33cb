"""The source of a task: how its rows are read, encoded, batched, saved and loaded."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from foveal.config import DataConfig
from foveal.core.runtime import derived_seed
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Column, Examples, RaggedArray, RowIndices
from foveal.data.core.fields import Fields
from foveal.data.core.length_buckets import BucketedEvalBatches, BucketedTrainBatches, collate_examples
from foveal.data.core.prepared_data import ReusedProcessors
from foveal.data.core.rows import Row, SkippedRow
from foveal.data.core.shuffle import permute_indices
from foveal.data.core.simple_features import SimpleFeatures
from foveal.data.files.data_part import DataPart
from foveal.data.files.utf8 import AnyPath

if TYPE_CHECKING:
    from foveal.data.pairs.target import Target

ProcessorT = TypeVar("ProcessorT")
MAX_FIT_ROWS = 4096
"""Largest number of rows that initial weights are computed from."""


class Source(ABC, Generic[ProcessorT]):
    """The input of a model, with a processor that is fitted to the training rows.

    A row has the field `source`: a text, words, or the sha256 of the file's content.
    """

    settings: tuple[str, ...]
    """The settings that the source reads."""
    fixed_settings: tuple[str, ...] = ()
    """The settings that a fitted processor or the weights of an encoder of the source fix."""
    same_label: ClassVar[str]
    """The start of the error message if all `{count}` training sources have the same label."""
    simple_features_in_words: ClassVar[str] = ""
    """What `simple_features` are, in words."""
    max_simple_features: ClassVar[int] = 0
    """The largest number of `simple_features`."""
    label_hint: ClassVar[str] = ""
    """The part of an error message that tells users how to name another column of labels."""
    input_field: ClassVar[str] = ""
    """The field of a row that a model reads: `source` is a text or words, `values` a series, `picture` an
    image, `file` a recording. Empty for others, and for several fields."""
    length_unit: ClassVar[str] = ""
    """The unit of that field's length: characters, words, steps or seconds. Empty if it has none."""
    place: ClassVar[str] = ""
    """The word for a place if each place has a label: step, frame."""
    has_tokenizer: ClassVar[bool] = False
    """Whether the source consists of tokens."""
    reads_lines: ClassVar[bool] = False
    """Whether a line of text is a source (`line_row`)."""
    is_stored: ClassVar[bool] = False
    """Whether prepared examples may be stored in the cache: rows have texts, lists of texts and arrays. A
    subclass says so itself."""
    model_sizes: ClassVar[tuple[str, ...] | None] = None
    """The sizes, beside settings, that an encoder of the source depends on; None if it needs data."""

    def shared_tokenizer(self, processor: ProcessorT, config: DataConfig) -> Any:
        """Return the tokenizer that source and target share; None if targets have their own."""
        return None

    @abstractmethod
    def read(
        self, part: DataPart, target: "Target[Any]", config: DataConfig, skipped: list[SkippedRow]
    ) -> Iterator[Row]:
        """Read rows with their targets. Rows that can't be used are added to `skipped`."""

    @abstractmethod
    def read_unlabeled(self, part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
        """Read rows without targets. The field `source` names the row."""

    def line_row(self, location: str, text: str) -> Row:
        """Return the row of a line of text, if a line is a source."""
        return Row(location, {"source": text})

    def table(self, part: DataPart) -> AnyPath | None:
        """Return the table whose rows `read_unlabeled` reads; None if each row is a file or a series."""
        return part.path if part.is_table else None

    def own_columns(self, row: Row | SkippedRow, config: DataConfig) -> Fields | None:
        """Return the columns of a row that is not in a table; None if its file or its place names the row."""
        return None

    @abstractmethod
    def fit(
        self, data: str, rows: Sequence[Row], config: DataConfig, reused: ReusedProcessors
    ) -> tuple[ProcessorT, Sequence[Row]]:
        """Return a processor, and the rows that the processor can read.

        The processor is fitted to the training rows, or taken from `reused`.

        Raises: UserError: the processor can read no row.
        """

    def sized_processor(self, sizes: Mapping[str, int], config: DataConfig) -> Any:
        """Return a processor that knows only the `model_sizes`, for a model that is made without data."""
        raise NotImplementedError

    def for_config(self, processor: ProcessorT, config: DataConfig) -> ProcessorT:
        """Return the processor of a run for a new run with another config."""
        return processor

    @abstractmethod
    def files(self, processor: ProcessorT, target_processor: Any) -> dict[str, bytes]:
        """Return the contents of a processor's files by their names in the run folder."""

    @abstractmethod
    def load(self, folder: Path) -> ProcessorT:
        """Read the files of a processor."""

    @abstractmethod
    def encode(self, row: Row, processor: ProcessorT, config: DataConfig) -> Any | str:
        """Encode a row that has a target, or return the reason why the row can't be used."""

    def encode_all(self, rows: Sequence[Row], processor: ProcessorT, config: DataConfig) -> list[Any | str]:
        """Return the result of `encode` for each row."""
        return [self.encode(row, processor, config) for row in rows]

    def encode_unlabeled(self, row: Row, processor: ProcessorT, config: DataConfig) -> Any | str:
        """Encode a row without a target, or return the reason why the row can't be used."""
        return self.encode(row, processor, config)

    def examples(
        self, rows: Sequence[Row], values: list[Any], processor: ProcessorT, columns: Mapping[str, Column]
    ) -> Any:
        """Return examples with the encoded `values` of rows and the `columns` of their targets."""
        return Examples({"source": RaggedArray.from_rows(values), **columns})

    def places(self, value: Any) -> NDArray[np.int64]:
        """Return the index of each place in an encoded row."""
        return np.arange(len(value))

    def length_ratio(self, rows: Sequence[Row], processor: ProcessorT, target_tokens: Any) -> float:
        """Return the largest number of target tokens per token or frame of the source; 0 if not meaningful.

        `target_tokens` is a function from a row to the number of its target's tokens.
        """
        return 0.0

    def check_labels(self, data: str, labels: Sequence[str], rows: Sequence[Row], config: DataConfig) -> None:
        """Check the labels of the training rows.

        Raises: UserError: there are far too many labels.
        """

    @abstractmethod
    def names(self, rows: Sequence[Row]) -> list[str]:
        """Return the name of each row."""

    def input_key(self, row: Row) -> str:
        """Return a text that rows share if a model reads the same of them. Their splits depend on `row.key`,
        which rows may share that differ in other parts."""
        return row.key

    def identity(self, row: Row) -> Any:
        """Return a JSON value that identifies a row's source. Equal sources have equal values."""
        return row.fields["source"]

    def hashed(self, row: Row, reference: Any) -> Any:
        """Return the JSON value of a row and its target that the sha256 of a split covers."""
        return self.identity(row), reference

    def content_hashes(self, rows: Sequence[Row]) -> list[str]:
        """Return the sha256 of each source's content; an empty list if sources are texts."""
        return [row.fields["source"] for row in rows]

    def lengths(self, rows: Sequence[Row], examples: Any) -> list[int]:
        """Return the length of each source, for scores by length. Empty if all sources have the same size."""
        lengths: list[int] = examples.lengths("source")
        return lengths

    @abstractmethod
    def sizes(self, rows: Sequence[Row], examples: Any) -> dict[str, int]:
        """Return sizes of the sources other than their number."""

    def train_batches(self, examples: Any, config: DataConfig, seed: int) -> Any:
        """Return the batches for training, micro-batches of the configured size."""
        return BucketedTrainBatches(examples, config.batch_tokens, seed)

    def eval_batches(self, examples: Any, config: DataConfig) -> Any:
        """Return batches that contain every example once."""
        return BucketedEvalBatches(examples, config.batch_tokens)

    def collate(self, examples: Any, rows: RowIndices) -> ExampleBatch:
        """Return the examples at the indices `rows` (B,) as a batch for evaluation."""
        return collate_examples(examples, rows)

    def position_names(self, batch: ExampleBatch, name: str, processor: ProcessorT) -> tuple[str, ...]:
        """Return the name of each position that a model reads of the only row of a batch, whose source is
        `name`; none if they are no sequence."""
        return tuple(f"{self.place or 'position'} {i}" for i in range(batch.columns["source"].shape[1]))

    def pixels(self, examples: Any, row: int) -> NDArray[np.uint8] | None:
        """Return the pixels (H, W, 3) that a model reads of a row; None if it reads no image."""
        return None

    def targets(self, part: DataPart, target: "Target[Any]", config: DataConfig, most: int) -> list[Any]:
        """Return the targets of the usable rows of a part, `most` at most, without decoding files.

        Raises: UserError: the part can't be read.
        """
        return [row.fields[target.field] for row in islice(self.read(part, target, config, []), most)]

    def simple_features(self, train: Any, held_out: Any) -> SimpleFeatures | None:
        """Return features of the examples of two splits, for a baseline; None if the source has none."""
        return None

    def fit_inputs(self, examples: Any, seed: int) -> tuple[Tensor, ...]:
        """Return encoder inputs of some examples, for initial weights that are computed from data.

        The choice is a function of the seed and the number of examples.
        """
        count = min(len(examples), MAX_FIT_ROWS)
        rows = permute_indices(np.arange(count), len(examples), derived_seed(seed, "fit"))
        batch = self.collate(examples, rows)
        lengths = (batch.lengths["source"],) if "source" in batch.lengths else ()
        return batch.columns["source"], *lengths
