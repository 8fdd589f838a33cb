"""Walks on maps of squares, to numbers: instructions as tokens, maps as symbols, paths as moves."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from foveal.config import DataConfig
from foveal.data.examples import Column, Examples, Ragged
from foveal.data.grid_world import SYMBOLS, WALL, shortest, spelled
from foveal.data.marks import framed
from foveal.data.parts import hashed
from foveal.data.prepared import NOTHING, Taken
from foveal.data.questions import readable
from foveal.data.room import FILE as ROOM
from foveal.data.room import Room, read_room
from foveal.data.rows import Aside, Row, keep
from foveal.data.tokenizers import FILE, Ids, Tokenizer, load_tokenizer, make_tokenizer
from foveal.data.walks_files import ANSWERED, ASKED, read_walks


@dataclass(frozen=True)
class WalkInputs:
    """The tokenizer of the instructions; `room` says how many moves are made at most, whatever was said."""

    source: Tokenizer
    room: Room

    def encode(self, text: str) -> Ids:
        """The tokens with the marks. Words without a token are left out."""
        return framed(self.source.encode_known(text)[0], self.source)

    def files(self) -> dict[str, bytes]:
        return {f"text/{FILE}": self.source.to_json().encode(), ROOM: self.room.to_json().encode()}


def open_inputs(folder: Path) -> WalkInputs:
    """What `WalkInputs.files` gave, below `folder`."""
    return WalkInputs(load_tokenizer(folder / "text"), read_room(folder))


@dataclass(frozen=True)
class Walks:
    """A part: maps, instructions and paths as they are, and columns `source` (tokens), `target` (moves with
    their stop), `map` (H, W), `start` (3,), `goal` (2,), and `shortest`, the fewest moves to it."""

    maps: list[list[str]]
    sources: list[str]
    paths: list[str]
    examples: Examples

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def lengths(self) -> list[int]:
        """The fewest moves of each."""
        fewest: list[int] = np.asarray(self.examples.columns["shortest"]).tolist()
        return fewest

    @cached_property
    def facts(self) -> dict[str, Any]:
        starts = np.asarray(self.examples.columns["start"]).tolist()
        return {
            "examples": len(self),
            "source_tokens": sum(self.examples.lengths("source")),
            "target_tokens": sum(self.examples.lengths("target")),
            "sha256": hashed(zip(self.maps, self.sources, starts, self.paths, strict=True)),
        }


def read(data: str, config: DataConfig, aside: list[Aside]) -> Iterator[Row]:
    """The walks of a file, with their paths."""
    return _usable(read_walks(data, ANSWERED), aside)


def read_questions(data: str, config: DataConfig, aside: list[Aside]) -> Iterator[Row]:
    """The same without paths."""
    return _usable(read_walks(data, ASKED), aside)


def make_inputs(data: str, rows: list[Row], config: DataConfig, taken: Taken = NOTHING) -> WalkInputs:
    texts = (row.fields["source"] for row in rows)
    source = taken.source or make_tokenizer(config.tokenizer, config.vocabulary, texts)
    longest = max(len(row.fields["path"]) for row in rows)
    return WalkInputs(source, Room.measured(longest, 0.0, config.longest))


def encode(rows: list[Row], inputs: WalkInputs, config: DataConfig, aside: list[Aside]) -> Walks:
    longest = config.longest

    def encoded(row: Row) -> Ids | str:
        source, moves = inputs.encode(row.fields["source"]), len(row.fields["path"])
        if max(len(source), moves) > longest:
            return (
                f"{len(source)} tokens and {moves} moves, and data.longest={longest}: raise it to use the row"
            )
        return source

    kept, found = keep(rows, encoded, aside)
    fields = [row.fields for row in kept]
    fewest = [len(shortest(row["cells"], row["start"], row["goal"]) or ()) for row in fields]
    columns = _asked(kept, found) | {
        "target": Ragged.from_rows(np.array(row["path"]) for row in fields),
        "goal": np.array([row["goal"] for row in fields], np.int64).reshape(-1, 2),
        "shortest": np.array(fewest, np.int64),
    }
    maps, sources, paths = ([row[name] for row in fields] for name in ("map", "source", "path"))
    return Walks(maps, sources, [spelled(path) for path in paths], Examples(columns))


def encode_questions(
    rows: list[Row], inputs: WalkInputs, config: DataConfig, aside: list[Aside]
) -> tuple[list[Row], Examples]:
    def encoded(row: Row) -> Ids | str:
        return readable(inputs.encode(row.fields["source"]), config.longest)

    kept, found = keep(rows, encoded, aside)
    return kept, Examples(_asked(kept, found))


def _usable(found: Iterable[Row | Aside], aside: list[Aside]) -> Iterator[Row]:
    for row in found:
        if isinstance(row, Aside):
            aside.append(row)
        else:
            yield row


def _asked(rows: list[Row], sources: list[Ids]) -> dict[str, Column]:
    """What is known of walks before they are made; `sources` are tokens of their instructions. Smaller maps
    have walls on the right and below."""
    maps = [row.fields["cells"] for row in rows]
    height, width = (max((cells.shape[axis] for cells in maps), default=0) for axis in (0, 1))
    whole = np.full((len(rows), height, width), SYMBOLS.index(WALL), np.int8)
    for place, cells in zip(whole, maps, strict=True):
        place[: cells.shape[0], : cells.shape[1]] = cells
    return {
        "source": Ragged.from_rows(sources),
        "map": whole,
        "start": np.array([row.fields["start"] for row in rows], np.int64).reshape(-1, 3),
    }
