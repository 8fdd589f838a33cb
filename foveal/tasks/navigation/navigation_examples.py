"""Walks on maps of squares, to numbers: instructions as tokens, maps as symbols, paths as moves."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foveal.config import DataConfig
from foveal.data.core.examples import Column, Examples, Ragged
from foveal.data.core.prepared_data import NOTHING, Taken
from foveal.data.core.rows import Aside, Row, keep
from foveal.data.core.split_data import Part, hashed
from foveal.data.text.length_limit import FILE as ROOM
from foveal.data.text.length_limit import Room, read_room
from foveal.data.text.special_tokens import framed
from foveal.data.text.tokenizers import FILE, Ids, Tokenizer, load_tokenizer, make_tokenizer
from foveal.data.text.unlabeled_texts import readable
from foveal.tasks.navigation.episode_files import ANSWERED, ASKED, read_walks
from foveal.tasks.navigation.grid_world import SYMBOLS, WALL, shortest, spelled


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


def encode(rows: list[Row], inputs: WalkInputs, config: DataConfig, aside: list[Aside]) -> Part[Examples]:
    """Columns `source` (tokens), `target` (moves with their stop), `map` (H, W), `start` (3,), `goal` (2,),
    and `shortest`, the fewest moves to it."""
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
    sources, paths = [row["source"] for row in fields], [spelled(row["path"]) for row in fields]
    examples = Examples(columns)
    sizes = {f"{side}_tokens": sum(examples.lengths(side)) for side in ("source", "target")}
    starts = [[*map(int, row["start"])] for row in fields]
    sha256 = hashed(zip((row["map"] for row in fields), sources, starts, paths, strict=True))
    return Part(sources, paths, examples, fewest, sizes, sha256)


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
