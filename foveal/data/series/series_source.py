"""The source of measured series, from files, as standardized channels."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.data.core.examples import Examples
from foveal.data.core.prepared_data import ReusedProcessors
from foveal.data.core.rows import Row, SkippedRow, usable_rows
from foveal.data.core.simple_features import MAX_STATISTICS, SimpleFeatures, summary_statistics
from foveal.data.core.standardize import STATISTICS_FILE, FloatArray, Statistics
from foveal.data.files.data_part import DataPart
from foveal.data.pairs.source import Source
from foveal.data.pairs.target import Target
from foveal.data.series.series_batches import AugmentedSeriesBatches, ShuffledTrainBatches
from foveal.data.series.series_files import LABEL, LABEL_FIELDS, TARGET_FIELDS, read_series

NEEDED_FIELDS = {"label": "one for the whole series", "labels": "one for each step"}
"""The labels that a task needs, for messages."""


class SeriesSource(Source[Statistics]):
    """A series as steps of standardized channels. The field `values` of a row is (T, C)."""

    settings = ("data.encoding", "data.max_length", "data.batch_tokens", "data.series")
    fixed_settings = ("data.series.standardize",)
    simple_features_in_words = "summary statistics"
    max_simple_features = MAX_STATISTICS
    same_label = "all of the {count:,} series to train on have the label"
    input_field = "values"
    length_unit = "steps"
    place = "step"
    model_sizes = ("channels",)
    is_stored = True

    def read(
        self, part: DataPart, target: Target[Any], config: DataConfig, skipped: list[SkippedRow]
    ) -> Iterator[Row]:
        field, label = target.field, LABEL
        if field == LABEL:
            label = target.column(config)
        elif field == "target":
            field = target.column(config)
        for row in _rows(part, LABEL_FIELDS if field in LABEL_FIELDS else (field,), skipped, label):
            if field not in row.fields:
                column = field if label == LABEL else label
                none = "no labels" if column in LABEL_FIELDS else f"no '{column}'"
                has = next((words for name, words in TARGET_FIELDS.items() if name in row.fields), none)
                needed = NEEDED_FIELDS.get(field, TARGET_FIELDS["text"])
                hint = "fix the file, or train with another --task"
                raise UserError(f"{row.location}: has {has}, and {needed} is needed; {hint}")
            values: FloatArray = row.fields["values"]
            content = hashlib.sha256(values.tobytes()).hexdigest()
            fields = {"source": content, "values": values, target.field: row.fields[field]}
            yield Row(row.location, fields, content)

    def read_unlabeled(self, part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
        """Read series with or without labels."""
        for row in _rows(part, (), skipped):
            yield Row(row.location, {"source": row.location, "values": row.fields["values"]})

    def fit(
        self, data: str, rows: Sequence[Row], config: DataConfig, reused: ReusedProcessors
    ) -> tuple[Statistics, Sequence[Row]]:
        usable = [row for row in rows if not _length_error(row, config.max_length)]
        if not usable:
            reason = _length_error(rows[0], config.max_length)
            raise UserError(f"{data}: no series can be used, the first: {rows[0].location}: {reason}")
        return reused.source or Statistics.from_data(row.fields["values"] for row in usable), usable

    def sized_processor(self, sizes: Mapping[str, int], config: DataConfig) -> Statistics:
        return Statistics.identity(sizes["channels"])

    def files(self, processor: Statistics, target_processor: Any) -> dict[str, bytes]:
        return {STATISTICS_FILE: processor.to_json().encode()}

    def load(self, folder: Path) -> Statistics:
        return Statistics.load(folder)

    def encode(self, row: Row, processor: Statistics, config: DataConfig) -> FloatArray | str:
        values: FloatArray = row.fields["values"]
        if values.shape[1] != processor.channels:
            return f"{values.shape[1]} channels, and the model reads {processor.channels}; give that many"
        if error := _length_error(row, config.max_length):
            return error
        own = config.series.standardize == "series"
        return (Statistics.from_data([values]) if own else processor).standardize(values)

    def train_batches(self, examples: Examples, config: DataConfig, seed: int) -> Any:
        series = config.series
        if series.batch_size:
            batches: Any = ShuffledTrainBatches(examples, series.batch_size, seed)
        else:
            batches = super().train_batches(examples, config, seed)
        is_changed = series.jitter or series.scaling
        return AugmentedSeriesBatches(batches, series, seed) if is_changed else batches

    def length_ratio(
        self, rows: Sequence[Row], processor: Statistics, target_tokens: Callable[[Row], int]
    ) -> float:
        return sum(map(target_tokens, rows)) / sum(len(row.fields["values"]) for row in rows)

    def simple_features(self, train: Examples, held_out: Examples) -> SimpleFeatures:
        return summary_statistics(train, held_out)

    def names(self, rows: Sequence[Row]) -> list[str]:
        return [row.location for row in rows]

    def sizes(self, rows: Sequence[Row], examples: Any) -> dict[str, int]:
        return {"steps": sum(examples.lengths("source"))}


def _rows(
    part: DataPart, targets: Sequence[str], skipped: list[SkippedRow], label: str = LABEL
) -> Iterator[Row]:
    """Yield the usable series of a file with the fields `targets`. Other series are added to `skipped`.

    `label` is the column of labels in a table.
    """
    for file in part.files:
        yield from usable_rows(read_series(file, targets, part.encoding, label), skipped)


def _length_error(row: Row, max_length: int) -> str:
    """Say why a series is too long. Empty if the series is not too long."""
    steps = len(row.fields["values"])
    if steps <= max_length:
        return ""
    return f"{steps:,} steps, and data.max_length={max_length}: train with more, or cut the series"
