"""The source and the target of navigation: instructions with maps, and the moves of paths."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from foveal.config import DataConfig
from foveal.data.core.examples import Column, Examples, RaggedArray
from foveal.data.core.rows import Row, SkippedRow, usable_rows
from foveal.data.files.data_part import DataPart
from foveal.data.pairs.target import FittingData, Target, TargetProcessor
from foveal.data.text.length_limit import LENGTH_LIMIT_FILE, LengthLimit, load_length_limit
from foveal.data.text.text_source import TextSource, encode_text
from foveal.data.text.tokenizers import TokenIds, Tokenizer
from foveal.data.text.unlabeled_texts import check_length
from foveal.tasks.navigation.episode_files import EPISODE_COLUMNS, INPUT_COLUMNS, read_episodes
from foveal.tasks.navigation.grid_world import SYMBOLS, WALL, moves_to_text, shortest_path


class MapSource(TextSource):
    """An instruction as tokens, a map as symbols, and a start. Rows with the same map are in the
    same split."""

    settings = ("data.encoding", "data.tokenizer", "data.vocab_size", "data.max_length", "data.batch_tokens")
    reads_lines = False

    def read(
        self, part: DataPart, target: Target[Any], config: DataConfig, skipped: list[SkippedRow]
    ) -> Iterator[Row]:
        return _keyed_by_map(read_episodes(part, EPISODE_COLUMNS), skipped)

    def read_unlabeled(self, part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
        return _keyed_by_map(read_episodes(part, INPUT_COLUMNS), skipped)

    def encode(self, row: Row, processor: Tokenizer, config: DataConfig) -> TokenIds | str:
        tokens, moves = encode_text(row.fields["source"], processor), len(row.fields["path"])
        if max(len(tokens), moves) > config.max_length:
            sizes = f"{len(tokens)} tokens and {moves} moves"
            return f"{sizes}, and data.max_length={config.max_length}: train with more"
        return tokens

    def encode_all(self, rows: Sequence[Row], processor: Tokenizer, config: DataConfig) -> list[Any | str]:
        return [self.encode(row, processor, config) for row in rows]

    def encode_unlabeled(self, row: Row, processor: Tokenizer, config: DataConfig) -> TokenIds | str:
        return check_length(encode_text(row.fields["source"], processor), config.max_length)

    def examples(
        self, rows: Sequence[Row], values: list[Any], processor: Tokenizer, columns: Mapping[str, Column]
    ) -> Examples:
        """Return columns `source` (tokens), `map` (H, W) and `start` (3,), and the columns of the target.

        Smaller maps are padded with walls on the right and below.
        """
        maps = [row.fields["cells"] for row in rows]
        height, width = (max((cells.shape[axis] for cells in maps), default=0) for axis in (0, 1))
        padded = np.full((len(rows), height, width), SYMBOLS.index(WALL), np.int8)
        for padded_map, cells in zip(padded, maps, strict=True):
            padded_map[: cells.shape[0], : cells.shape[1]] = cells
        start = np.array([row.fields["start"] for row in rows], np.int64).reshape(-1, 3)
        return Examples({"source": RaggedArray.from_rows(values), "map": padded, "start": start, **columns})

    def hashed(self, row: Row, reference: Any) -> Any:
        fields = row.fields
        return fields["map"], fields["source"], [*map(int, fields["start"])], reference

    def lengths(self, rows: Sequence[Row], examples: Any) -> list[int]:
        """Return the number of moves of the shortest path to each goal."""
        fewest: list[int] = examples.columns["shortest"].tolist()
        return fewest

    def sizes(self, rows: Sequence[Row], examples: Any) -> dict[str, int]:
        return {f"{side}_tokens": sum(examples.lengths(side)) for side in ("source", "target")}


@dataclass(frozen=True)
class MovesProcessor(TargetProcessor):
    """The processor of paths: the largest number of moves."""

    length_limit: LengthLimit

    def caption(self, columns: Mapping[str, Tensor]) -> str:
        return moves_to_text(columns["target"].tolist())


class EncodedPath(NamedTuple):
    """The moves of a path with the stop, the goal, and the number of moves of the shortest path to
    the goal."""

    moves: list[int]
    goal: tuple[int, int]
    fewest: int


class MovesTarget(Target[MovesProcessor]):
    """A path. Columns: `target` (moves with the stop), `goal` (2,) and `shortest` (number of moves of the
    shortest path)."""

    settings = ("data.max_length",)
    field = "path"

    def fit(self, fitting: FittingData) -> MovesProcessor:
        longest = max(len(row.fields["path"]) for row in fitting.rows)
        return MovesProcessor(LengthLimit.from_lengths(longest, 0.0, fitting.config.max_length))

    def files(self, processor: MovesProcessor, source_processor: Any) -> dict[str, bytes]:
        return {LENGTH_LIMIT_FILE: processor.length_limit.to_json().encode()}

    def load(self, folder: Path, source_processor: Any) -> MovesProcessor:
        return MovesProcessor(load_length_limit(folder))

    def encode(self, row: Row, processor: MovesProcessor, config: DataConfig) -> EncodedPath | str:
        fields = row.fields
        fewest = shortest_path(fields["cells"], fields["start"], fields["goal"])
        return EncodedPath(fields["path"], fields["goal"], len(fewest or ()))

    def columns(self, values: list[Any]) -> dict[str, Column]:
        return {
            "target": RaggedArray.from_rows(np.array(path.moves) for path in values),
            "goal": np.array([path.goal for path in values], np.int64).reshape(-1, 2),
            "shortest": np.array([path.fewest for path in values], np.int64),
        }

    def references(self, rows: Sequence[Row]) -> list[Any]:
        return [moves_to_text(row.fields["path"]) for row in rows]


def _keyed_by_map(rows: Iterable[Row | SkippedRow], skipped: list[SkippedRow]) -> Iterator[Row]:
    for row in usable_rows(rows, skipped):
        yield Row(row.location, row.fields, " ".join(row.fields["map"]))
