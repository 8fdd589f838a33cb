"""Walks on maps of squares, to numbers: instructions as tokens, maps as symbols, paths as moves."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foveal.config import DataConfig
from foveal.data.core.examples import Column, Examples, RaggedArray
from foveal.data.core.prepared_data import NO_REUSE, ReusedProcessors
from foveal.data.core.rows import Row, SkippedRow, encode_or_skip
from foveal.data.core.split_data import SplitData, content_hash
from foveal.data.files.data_part import DataPart
from foveal.data.text.length_limit import LENGTH_LIMIT_FILE, LengthLimit, load_length_limit
from foveal.data.text.special_tokens import add_special_tokens
from foveal.data.text.tokenizers import TOKENIZER_FILE, TokenIds, Tokenizer, load_tokenizer, make_tokenizer
from foveal.data.text.unlabeled_texts import check_length
from foveal.tasks.navigation.episode_files import EPISODE_COLUMNS, INPUT_COLUMNS, read_episodes
from foveal.tasks.navigation.grid_world import SYMBOLS, WALL, moves_to_text, shortest_path


@dataclass(frozen=True)
class NavigationProcessor:
    """The tokenizer of the instructions; `length_limit` says how many moves are made at most, whatever was
    said."""

    source: Tokenizer
    length_limit: LengthLimit

    def encode(self, text: str) -> TokenIds:
        """The tokens with the marks. Words without a token are left out."""
        return add_special_tokens(self.source.encode_known(text)[0], self.source)

    def files(self) -> dict[str, bytes]:
        return {
            f"text/{TOKENIZER_FILE}": self.source.to_json().encode(),
            LENGTH_LIMIT_FILE: self.length_limit.to_json().encode(),
        }


def load_processor(folder: Path) -> NavigationProcessor:
    """What `NavigationProcessor.files` gave, below `folder`."""
    return NavigationProcessor(load_tokenizer(folder / "text"), load_length_limit(folder))


def read(part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
    """The walks of a file, with their paths."""
    return _usable_rows(read_episodes(part, EPISODE_COLUMNS), skipped)


def read_unlabeled(part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
    """The same without paths."""
    return _usable_rows(read_episodes(part, INPUT_COLUMNS), skipped)


def make_processor(
    data: str, rows: list[Row], config: DataConfig, reused: ReusedProcessors = NO_REUSE
) -> NavigationProcessor:
    texts = (row.fields["source"] for row in rows)
    source = reused.source or make_tokenizer(config.tokenizer, config.vocab_size, texts)
    longest = max(len(row.fields["path"]) for row in rows)
    return NavigationProcessor(source, LengthLimit.from_lengths(longest, 0.0, config.max_length))


def encode(
    rows: list[Row], processor: NavigationProcessor, config: DataConfig, skipped: list[SkippedRow]
) -> SplitData[Examples]:
    """Columns `source` (tokens), `target` (moves with their stop), `map` (H, W), `start` (3,), `goal` (2,),
    and `shortest`, the fewest moves to it."""
    longest = config.max_length

    def encoded(row: Row) -> TokenIds | str:
        source, moves = processor.encode(row.fields["source"]), len(row.fields["path"])
        if max(len(source), moves) > longest:
            return (
                f"{len(source)} tokens and {moves} moves, and data.max_length={longest}: "
                "raise it to use the row"
            )
        return source

    kept, found = encode_or_skip(rows, encoded, skipped)
    fields = [row.fields for row in kept]
    fewest = [len(shortest_path(row["cells"], row["start"], row["goal"]) or ()) for row in fields]
    columns = _input_columns(kept, found) | {
        "target": RaggedArray.from_rows(np.array(row["path"]) for row in fields),
        "goal": np.array([row["goal"] for row in fields], np.int64).reshape(-1, 2),
        "shortest": np.array(fewest, np.int64),
    }
    sources, paths = [row["source"] for row in fields], [moves_to_text(row["path"]) for row in fields]
    examples = Examples(columns)
    sizes = {f"{side}_tokens": sum(examples.lengths(side)) for side in ("source", "target")}
    starts = [[*map(int, row["start"])] for row in fields]
    sha256 = content_hash(zip((row["map"] for row in fields), sources, starts, paths, strict=True))
    return SplitData(sources, paths, examples, fewest, sizes, sha256)


def encode_unlabeled(
    rows: list[Row], processor: NavigationProcessor, config: DataConfig, skipped: list[SkippedRow]
) -> tuple[list[Row], Examples]:
    def encoded(row: Row) -> TokenIds | str:
        return check_length(processor.encode(row.fields["source"]), config.max_length)

    kept, found = encode_or_skip(rows, encoded, skipped)
    return kept, Examples(_input_columns(kept, found))


def _usable_rows(rows: Iterable[Row | SkippedRow], skipped: list[SkippedRow]) -> Iterator[Row]:
    for row in rows:
        if isinstance(row, SkippedRow):
            skipped.append(row)
        else:
            yield row


def _input_columns(rows: list[Row], sources: list[TokenIds]) -> dict[str, Column]:
    """What is known of walks before they are made; `sources` are tokens of their instructions. Smaller maps
    have walls on the right and below."""
    maps = [row.fields["cells"] for row in rows]
    height, width = (max((cells.shape[axis] for cells in maps), default=0) for axis in (0, 1))
    whole = np.full((len(rows), height, width), SYMBOLS.index(WALL), np.int8)
    for place, cells in zip(whole, maps, strict=True):
        place[: cells.shape[0], : cells.shape[1]] = cells
    return {
        "source": RaggedArray.from_rows(sources),
        "map": whole,
        "start": np.array([row.fields["start"] for row in rows], np.int64).reshape(-1, 3),
    }
