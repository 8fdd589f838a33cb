"""Recordings with their text: a folder with metadata, to frames and tokens."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.data.audio.audio_features import FEATURES_FILE, AudioFeatureExtractor, LogMelSettings
from foveal.data.core.examples import Examples, RaggedArray
from foveal.data.core.prepared_data import NO_REUSE, ReusedProcessors
from foveal.data.core.rows import Row, SkippedRow, encode_or_skip
from foveal.data.core.split_data import SplitData, content_hash
from foveal.data.core.standardize import FloatArray, Statistics
from foveal.data.files.data_part import DataPart
from foveal.data.files.folders import FILE_FIELD, first_files, read_folder
from foveal.data.text.length_limit import LENGTH_LIMIT_FILE, LengthLimit, load_length_limit
from foveal.data.text.special_tokens import SpecialTokens
from foveal.data.text.tokenizers import TOKENIZER_FILE, TokenIds, Tokenizer, load_tokenizer, make_tokenizer
from foveal.store.durable import file_sha256

AUDIO_SUFFIXES = (".wav", ".flac", ".ogg", ".mp3")


@dataclass(frozen=True)
class SpeechProcessor:
    """Frames of a recording, and the tokenizer of its text; `length_limit` says how long that may become."""

    audio: AudioFeatureExtractor
    target: Tokenizer
    length_limit: LengthLimit

    @property
    def source(self) -> AudioFeatureExtractor:
        """What the encoder needs."""
        return self.audio

    def encode_target(self, text: str) -> TokenIds:
        return np.append(self.target.encode_known(text)[0], SpecialTokens(self.target.size).eos)

    def files(self) -> dict[str, bytes]:
        return {
            f"audio/{FEATURES_FILE}": self.audio.to_json().encode(),
            f"target/{TOKENIZER_FILE}": self.target.to_json().encode(),
            LENGTH_LIMIT_FILE: self.length_limit.to_json().encode(),
        }


def load_processor(folder: Path) -> SpeechProcessor:
    """What `SpeechProcessor.files` gave, below `folder`."""
    audio, target = AudioFeatureExtractor.load(folder / "audio"), load_tokenizer(folder / "target")
    return SpeechProcessor(audio, target, load_length_limit(folder))


def read(part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
    """The recordings of a folder: fields `source` (the sha256 of the file), `file` and `target`."""
    if not part.is_disk_folder:
        raise UserError(f"{part}: not a folder of recordings with metadata.csv or metadata.jsonl")
    return audio_rows(read_folder(part.listing, (config.text,)), config.text, "target", skipped)


def audio_rows(
    rows: Iterable[Row | SkippedRow], column: str, field: str, skipped: list[SkippedRow]
) -> Iterator[Row]:
    """Of a folder's rows `source` (the sha256 of the file), `file`, and as `field` what is in the column."""
    for row in rows:
        if isinstance(row, SkippedRow):
            skipped.append(row)
        else:
            file, text = row.fields[FILE_FIELD], row.fields[column].strip()
            yield Row(row.location, {"source": file_sha256(file), "file": file, field: text})


def load_features(
    data: str, rows: list[Row], config: DataConfig, reused: ReusedProcessors
) -> tuple[AudioFeatureExtractor, list[FloatArray | str]]:
    """The processor of recordings, that of a run if it is taken; and the frames of each, or why there are
    none. Errors: UserError if none can be used."""
    known: AudioFeatureExtractor | None = reused.source
    settings = (
        LogMelSettings(config.sample_rate, config.mel_bins, config.max_seconds)
        if known is None
        else known.settings
    )
    frames = [_extract_features(settings, row) for row in rows]
    usable = [values for values in frames if not isinstance(values, str)]
    if not usable:
        raise UserError(f"{data}: no recording can be used, the first: {frames[0]}")
    return known or AudioFeatureExtractor(settings, Statistics.from_data(usable)), frames


def make_processor(
    data: str, rows: list[Row], config: DataConfig, reused: ReusedProcessors = NO_REUSE
) -> SpeechProcessor:
    audio, frames = load_features(data, rows, config, reused)
    texts = [row.fields["target"] for row in rows]
    target = make_tokenizer(config.tokenizer, config.vocab_size, texts)
    used = [(text, found) for text, found in zip(texts, frames, strict=True) if not isinstance(found, str)]
    ratio = sum(len(target.encode(text)) for text, _ in used) / sum(len(found) for _, found in used)
    return SpeechProcessor(audio, target, LengthLimit.from_texts(target, texts, config.max_length, ratio))


def encode(
    rows: list[Row], processor: SpeechProcessor, config: DataConfig, skipped: list[SkippedRow]
) -> SplitData[Examples]:
    """Columns `source` (frames) and `target` with its stop."""

    def encoded(row: Row) -> tuple[FloatArray, TokenIds] | str:
        target = processor.encode_target(row.fields["target"])
        if len(target) > config.max_length:
            return f"{len(target)} tokens, and data.max_length={config.max_length}: raise it to use the row"
        values = standardized_features(processor.audio, row)
        return values if isinstance(values, str) else (values, target)

    kept, found = encode_or_skip(rows, encoded, skipped)
    fields = [row.fields for row in kept]
    names, texts, contents = ([str(row[name]) for row in fields] for name in ("file", "target", "source"))
    columns = {
        "source": RaggedArray.from_rows(values for values, _ in found),
        "target": RaggedArray.from_rows(target for _, target in found),
    }
    examples = Examples(columns)
    lengths = examples.lengths("source")
    sizes = {"frames": sum(lengths), "characters": sum(map(len, texts))}
    sha256 = content_hash(zip(contents, texts, strict=True))
    return SplitData(names, texts, examples, lengths, sizes, sha256, contents)


def are_recordings(part: DataPart) -> bool:
    """Return whether most of a folder's first files are recordings."""
    if not part.is_disk_folder:
        return False
    first = first_files(part.listing)
    return 2 * sum(name.lower().endswith(AUDIO_SUFFIXES) for name in first) > len(first)


def read_unlabeled(part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
    """Read a recording, or all in a folder. Texts and labels are not needed."""
    if part.status is None:
        raise UserError(f"{part}: no such file or folder")
    files = [part.path] if part.is_file else sorted(part.path / name for name in part.listing.walk())
    files = [file for file in files if file.suffix.lower() in AUDIO_SUFFIXES]
    if not files:
        raise UserError(f"{part}: no recordings in it ({', '.join(AUDIO_SUFFIXES)})")
    for file in files:
        yield Row(str(file), {"source": str(file), "file": file})


def encode_unlabeled(
    rows: list[Row], processor: Any, config: DataConfig, skipped: list[SkippedRow]
) -> tuple[list[Row], Examples]:
    kept, found = encode_or_skip(rows, lambda row: standardized_features(processor.audio, row), skipped)
    return kept, Examples({"source": RaggedArray.from_rows(found)})


def standardized_features(audio: AudioFeatureExtractor, row: Row) -> FloatArray | str:
    """Standardised; or why there are none."""
    values = _extract_features(audio.settings, row)
    return values if isinstance(values, str) else audio.statistics.standardize(values)


def _extract_features(settings: LogMelSettings, row: Row) -> FloatArray | str:
    """The frames, or why there are none: with the file's name, unless that is the row's place."""
    try:
        return settings.frames(row.fields["file"])
    except UserError as error:
        return str(error).removeprefix(f"{row.location}: ")
