"""The source of recordings, from folders by class or with metadata, as log-mel frames."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.data.audio.audio_features import FEATURES_FILE, AudioFeatureExtractor, LogMelSettings
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Examples
from foveal.data.core.prepared_data import ReusedProcessors
from foveal.data.core.rows import Row, SkippedRow, usable_rows
from foveal.data.core.simple_features import MAX_STATISTICS, SimpleFeatures, summary_statistics
from foveal.data.core.standardize import FloatArray, Statistics
from foveal.data.files.data_part import DataPart
from foveal.data.files.folders import FILE_FIELD, read_folder
from foveal.data.files.sidecars import without_sidecars
from foveal.data.pairs.source import Source
from foveal.data.pairs.target import Target
from foveal.ops.audio.log_mel import HOP_SECONDS
from foveal.store.durable import file_sha256

AUDIO_SUFFIXES = (".wav", ".flac", ".ogg", ".mp3", ".aiff", ".aif")
AUDIO_FOLDER = "audio"
FRAMES_FIELD = "log_mel"
"""The field of a row with its log-mel frames, between fitting the statistics and encoding the row."""


class AudioSource(Source[AudioFeatureExtractor]):
    """A recording as standardized log-mel frames. The field `file` of a row is the path."""

    settings = (
        "data.encoding",
        "data.sample_rate",
        "data.mel_bins",
        "data.max_seconds",
        "data.batch_tokens",
    )
    fixed_settings = ("data.sample_rate", "data.mel_bins", "data.max_seconds")
    simple_features_in_words = "summary statistics"
    max_simple_features = MAX_STATISTICS
    same_label = "all of the {count:,} recordings to train on have the label"
    input_field = "file"
    length_unit = "seconds"
    place = "frame"
    model_sizes = ()

    def read(
        self, part: DataPart, target: Target[Any], config: DataConfig, skipped: list[SkippedRow]
    ) -> Iterator[Row]:
        for row in usable_rows(_labeled_files(part, target, config), skipped):
            file = row.fields[FILE_FIELD]
            content = file_sha256(file)
            fields = {"source": content, "file": file, target.field: row.fields[target.field]}
            yield Row(row.location, fields, content)

    def targets(self, part: DataPart, target: Target[Any], config: DataConfig, most: int) -> list[Any]:
        rows = usable_rows(islice(_labeled_files(part, target, config), most), [])
        return [row.fields[target.field] for row in rows]

    def read_unlabeled(self, part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
        """Read a recording, or all recordings in a folder."""
        if part.status is None:
            raise UserError(f"{part}: no such file or folder")
        files = [part.path] if part.is_file else sorted(part.path / name for name in part.listing.walk())
        files = [file for file in files if file.suffix.lower() in AUDIO_SUFFIXES]
        if not files:
            raise UserError(f"{part}: no recordings in it ({', '.join(AUDIO_SUFFIXES)})")
        for file in files:
            yield Row(str(file), {"source": str(file), "file": file})

    def fit(
        self, data: str, rows: Sequence[Row], config: DataConfig, reused: ReusedProcessors
    ) -> tuple[AudioFeatureExtractor, Sequence[Row]]:
        known: AudioFeatureExtractor | None = reused.source
        settings = _log_mel_settings(config) if known is None else known.settings
        usable = [row for row in rows if not isinstance(keep_frames(settings, row), str)]
        if not usable:
            raise UserError(
                f"{data}: no recording can be used; the first error: {rows[0].fields[FRAMES_FIELD]}"
            )
        if known is not None:
            return known, usable
        return AudioFeatureExtractor(settings, Statistics.from_data(_kept_frames(usable))), usable

    def sized_processor(self, sizes: Mapping[str, int], config: DataConfig) -> AudioFeatureExtractor:
        return AudioFeatureExtractor(_log_mel_settings(config), Statistics.identity(config.mel_bins))

    def files(self, processor: AudioFeatureExtractor, target_processor: Any) -> dict[str, bytes]:
        return {f"{AUDIO_FOLDER}/{FEATURES_FILE}": processor.to_json().encode()}

    def load(self, folder: Path) -> AudioFeatureExtractor:
        return AudioFeatureExtractor.load(folder / AUDIO_FOLDER)

    def encode(self, row: Row, processor: AudioFeatureExtractor, config: DataConfig) -> FloatArray | str:
        frames = keep_frames(processor.settings, row)
        del row.fields[FRAMES_FIELD]
        return frames if isinstance(frames, str) else processor.statistics.standardize(frames)

    def length_ratio(
        self, rows: Sequence[Row], processor: AudioFeatureExtractor, target_tokens: Callable[[Row], int]
    ) -> float:
        return sum(map(target_tokens, rows)) / sum(map(len, _kept_frames(rows)))

    def simple_features(self, train: Examples, held_out: Examples) -> SimpleFeatures:
        return summary_statistics(train, held_out)

    def position_names(
        self, batch: ExampleBatch, name: str, processor: AudioFeatureExtractor
    ) -> tuple[str, ...]:
        frames = batch.columns["source"].shape[1]
        return tuple(f"{HOP_SECONDS * frame:.2f} s" for frame in range(frames))

    def names(self, rows: Sequence[Row]) -> list[str]:
        return [str(row.fields["file"]) for row in rows]

    def sizes(self, rows: Sequence[Row], examples: Any) -> dict[str, int]:
        return {"frames": sum(examples.lengths("source"))}


def _log_mel_settings(config: DataConfig) -> LogMelSettings:
    return LogMelSettings(config.sample_rate, config.mel_bins, config.max_seconds)


def _labeled_files(part: DataPart, target: Target[Any], config: DataConfig) -> Iterator[Row | SkippedRow]:
    """Read the path and the target of each recording in a folder.

    Raises: UserError: the part is not a folder of recordings, or lacks a table or column.
    """
    if not part.is_disk_folder:
        layout = ", by class or with metadata.csv or .jsonl"
        if not target.is_class:
            layout = " with metadata.csv or metadata.jsonl"
        raise UserError(f"{part}: not a folder of recordings{layout}")
    column = "label" if target.is_class and part.table is None else target.column(config)
    return read_folder(part, (column,), lambda fields: target.parse(column, fields[column]))


def are_recordings(part: DataPart) -> bool:
    """Return whether most of a folder's first files are recordings."""
    if not part.is_disk_folder:
        return False
    first = without_sidecars(part.first_files)
    return 2 * sum(name.lower().endswith(AUDIO_SUFFIXES) for name in first) > len(first)


def keep_frames(settings: LogMelSettings, row: Row) -> FloatArray | str:
    """Return the frames of a row's recording, or the reason why it can't be used.

    The frames are stored in the row, so that a recording is decoded once. The reason names the file, unless
    the file is the row's location.
    """
    if FRAMES_FIELD not in row.fields:
        try:
            row.fields[FRAMES_FIELD] = settings.frames(row.fields["file"])
        except UserError as error:
            row.fields[FRAMES_FIELD] = str(error).removeprefix(f"{row.location}: ")
    frames: FloatArray | str = row.fields[FRAMES_FIELD]
    return frames


def _kept_frames(rows: Sequence[Row]) -> Iterator[FloatArray]:
    return (row.fields[FRAMES_FIELD] for row in rows)
