"""Recordings with their text: a folder with metadata, to frames and tokens."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.data.audio.audio_features import FILE as FEATURES
from foveal.data.audio.audio_features import AudioFeatures, MelSettings
from foveal.data.core.examples import Examples, Ragged
from foveal.data.core.prepared_data import NOTHING, Taken
from foveal.data.core.rows import Aside, Row, keep
from foveal.data.core.split_data import Part, hashed
from foveal.data.core.standardize import Statistics, Values
from foveal.data.files.folders import FILE as SOUND
from foveal.data.files.folders import TABLES, files_in, read_folder
from foveal.data.text.length_limit import FILE as ROOM
from foveal.data.text.length_limit import Room, read_room
from foveal.data.text.special_tokens import Marks
from foveal.data.text.tokenizers import FILE, Ids, Tokenizer, load_tokenizer, make_tokenizer
from foveal.store.durable import digest

SUFFIXES = (".wav", ".flac", ".ogg", ".mp3")
SOME = 100
"""Files of a folder that are looked at to see what it is for."""


@dataclass(frozen=True)
class SpeechInputs:
    """Frames of a recording, and the tokenizer of its text; `room` says how long that may become."""

    audio: AudioFeatures
    target: Tokenizer
    room: Room

    @property
    def source(self) -> AudioFeatures:
        """What the encoder needs."""
        return self.audio

    def encode_target(self, text: str) -> Ids:
        return np.append(self.target.encode_known(text)[0], Marks(self.target.size).stop)

    def files(self) -> dict[str, bytes]:
        return {
            f"audio/{FEATURES}": self.audio.to_json().encode(),
            f"target/{FILE}": self.target.to_json().encode(),
            ROOM: self.room.to_json().encode(),
        }


def open_inputs(folder: Path) -> SpeechInputs:
    """What `SpeechInputs.files` gave, below `folder`."""
    audio, target = AudioFeatures.load(folder / "audio"), load_tokenizer(folder / "target")
    return SpeechInputs(audio, target, read_room(folder))


def read(data: str, config: DataConfig, aside: list[Aside]) -> Iterator[Row]:
    """The recordings of a folder: fields `source` (the sha256 of the file), `file` and `target`."""
    if not Path(data).is_dir():
        raise UserError(f"{data}: not a folder of recordings with metadata.csv or metadata.jsonl")
    return named(read_folder(Path(data), (config.column,)), config.column, "target", aside)


def named(rows: Iterable[Row | Aside], column: str, field: str, aside: list[Aside]) -> Iterator[Row]:
    """Of a folder's rows `source` (the sha256 of the file), `file`, and as `field` what is in the column."""
    for row in rows:
        if isinstance(row, Aside):
            aside.append(row)
        else:
            file, text = row.fields[SOUND], row.fields[column].strip()
            yield Row(row.place, {"source": digest(file), "file": file, field: text})


def heard(
    data: str, rows: list[Row], config: DataConfig, taken: Taken
) -> tuple[AudioFeatures, list[Values | str]]:
    """The processor of recordings, that of a run if it is taken; and the frames of each, or why there are
    none. Errors: UserError if none can be used."""
    known: AudioFeatures | None = taken.source
    settings = MelSettings(config.rate, config.bins, config.seconds) if known is None else known.settings
    frames = [_frames(settings, row) for row in rows]
    usable = [values for values in frames if not isinstance(values, str)]
    if not usable:
        raise UserError(f"{data}: no recording can be used, the first: {frames[0]}")
    return known or AudioFeatures(settings, Statistics.of(usable)), frames


def make_inputs(data: str, rows: list[Row], config: DataConfig, taken: Taken = NOTHING) -> SpeechInputs:
    audio, frames = heard(data, rows, config, taken)
    texts = [row.fields["target"] for row in rows]
    target = make_tokenizer(config.tokenizer, config.vocabulary, texts)
    used = [(text, found) for text, found in zip(texts, frames, strict=True) if not isinstance(found, str)]
    ratio = sum(len(target.encode(text)) for text, _ in used) / sum(len(found) for _, found in used)
    return SpeechInputs(audio, target, Room.of_texts(target, texts, config.longest, ratio))


def encode(rows: list[Row], inputs: SpeechInputs, config: DataConfig, aside: list[Aside]) -> Part[Examples]:
    """Columns `source` (frames) and `target` with its stop."""

    def encoded(row: Row) -> tuple[Values, Ids] | str:
        target = inputs.encode_target(row.fields["target"])
        if len(target) > config.longest:
            return f"{len(target)} tokens, and data.longest={config.longest}: raise it to use the row"
        values = frames_of(inputs.audio, row)
        return values if isinstance(values, str) else (values, target)

    kept, found = keep(rows, encoded, aside)
    fields = [row.fields for row in kept]
    names, texts, contents = ([str(row[name]) for row in fields] for name in ("file", "target", "source"))
    columns = {
        "source": Ragged.from_rows(values for values, _ in found),
        "target": Ragged.from_rows(target for _, target in found),
    }
    examples = Examples(columns)
    lengths = examples.lengths("source")
    sizes = {"frames": sum(lengths), "characters": sum(map(len, texts))}
    sha256 = hashed(zip(contents, texts, strict=True))
    return Part(names, texts, examples, lengths, sizes, sha256, contents)


def are_recordings(data: str) -> bool:
    """Whether most of a folder's first files are some."""
    folder = Path(data)
    if not folder.is_dir():
        return False
    try:
        first = [*islice((name for name in files_in(folder) if name not in TABLES), SOME)]
    except UserError:  # whose reader says what is wrong
        return False
    return bool(first) and 2 * sum(name.lower().endswith(SUFFIXES) for name in first) > len(first)


def read_questions(data: str, config: DataConfig, aside: list[Aside]) -> Iterator[Row]:
    """A recording, or all in a folder; no texts are needed."""
    path = Path(data)
    if not path.exists():
        raise UserError(f"{data}: no such file or folder")
    files = [path] if path.is_file() else sorted(path.rglob("*"))
    files = [file for file in files if file.suffix.lower() in SUFFIXES]
    if not files:
        raise UserError(f"{data}: no recordings in it ({', '.join(SUFFIXES)})")
    for file in files:
        yield Row(str(file), {"source": str(file), "file": file})


def encode_questions(
    rows: list[Row], inputs: Any, config: DataConfig, aside: list[Aside]
) -> tuple[list[Row], Examples]:
    kept, found = keep(rows, lambda row: frames_of(inputs.audio, row), aside)
    return kept, Examples({"source": Ragged.from_rows(found)})


def frames_of(audio: AudioFeatures, row: Row) -> Values | str:
    """Standardised; or why there are none."""
    values = _frames(audio.settings, row)
    return values if isinstance(values, str) else audio.statistics.standardize(values)


def _frames(settings: MelSettings, row: Row) -> Values | str:
    """The frames, or why there are none: with the file's name, unless that is the row's place."""
    try:
        return settings.frames(row.fields["file"])
    except UserError as error:
        return str(error).removeprefix(f"{row.place}: ")
