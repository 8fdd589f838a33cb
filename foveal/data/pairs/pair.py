"""The data format of a task: a source with a target."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foveal.config import DataConfig
from foveal.core.progress import count_rows
from foveal.data.core.examples import Column, RaggedArray
from foveal.data.core.fields import Fields
from foveal.data.core.prepared_data import NO_REUSE, ReusedProcessors
from foveal.data.core.rows import Row, SkippedRow, encode_or_skip
from foveal.data.core.split_data import ContentHash, SplitData
from foveal.data.files.data_part import DataPart
from foveal.data.pairs.own_columns import place_columns, shard_columns
from foveal.data.pairs.source import Source
from foveal.data.pairs.target import FittingData, Target


@dataclass(frozen=True)
class PairProcessor:
    """The processors of a source and of a target, each fitted to the training rows."""

    source: Any
    target: Any


@dataclass(frozen=True)
class PairFormat:
    """The data format of examples with a source and a target."""

    source: Source[Any]
    target: Target[Any]

    @property
    def settings(self) -> tuple[str, ...]:
        """The settings that the source or the target reads."""
        return tuple(dict.fromkeys((*self.source.settings, *self.target.settings)))

    @property
    def model_sizes(self) -> tuple[str, ...] | None:
        """The sizes that a model without data depends on; None if the source or the target needs data."""
        source, target = self.source.model_sizes, self.target.model_sizes
        return None if source is None or target is None else tuple(dict.fromkeys((*source, *target)))

    def sized_processor(self, sizes: Mapping[str, int], config: DataConfig) -> PairProcessor:
        """Return processors that know only the `model_sizes`."""
        return PairProcessor(self.source.sized_processor(sizes, config), self.target.sized_processor(sizes))

    def read(self, part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
        """Read the rows of a file or folder. Rows that can't be used are added to `skipped`."""
        for row in count_rows(self.source.read(part, self.target, config, skipped)):
            if reason := self.target.missing_error(row):
                skipped.append(SkippedRow(row.location, reason))
            else:
                yield row

    def read_unlabeled(self, part: DataPart, config: DataConfig, skipped: list[SkippedRow]) -> Iterator[Row]:
        """Read rows without targets. Rows that can't be used are added to `skipped`."""
        return count_rows(self.source.read_unlabeled(part, config, skipped))

    def read_in_order(self, part: DataPart, config: DataConfig) -> list[Row | SkippedRow]:
        """Read rows without targets. Rows that can't be read keep their place."""
        rows: list[Row | SkippedRow] = []
        skipped: list[SkippedRow] = []
        for row in self.read_unlabeled(part, config, skipped):
            rows += [*skipped, row]
            skipped.clear()
        return rows + skipped

    def own_columns(
        self, part: DataPart, rows: Sequence[Row | SkippedRow], config: DataConfig
    ) -> list[Fields]:
        """Return the columns of each row of a file or folder that `read_in_order` has read."""
        table = self.source.table(part)
        if table is None:
            own = (None if part.is_folder else self.source.own_columns(row, config) for row in rows)
            pairs = zip(own, rows, strict=True)
            return [place_columns(part, row.location) if each is None else each for each, row in pairs]
        return shard_columns(part.files if part.is_table else [table], part.encoding, rows)

    def make_processor(
        self, data: str, rows: Sequence[Row], config: DataConfig, reused: ReusedProcessors = NO_REUSE
    ) -> PairProcessor:
        """Return a processor fitted to the training rows, with the processors in `reused`.

        Raises: UserError: no row can be used, or there is only one label.
        """
        source, usable = self.source.fit(data, rows, config, reused)
        fitting = FittingData(data, rows, usable, self.source, source, config, reused)
        return PairProcessor(source, self.target.fit(fitting))

    def files(self, processor: PairProcessor) -> dict[str, bytes]:
        """Return the contents of a processor's files by their names in the run folder."""
        source, target = processor.source, processor.target
        return self.source.files(source, target) | self.target.files(target, source)

    def load_processor(self, folder: Path) -> PairProcessor:
        """Read the files of a processor."""
        source = self.source.load(folder)
        return PairProcessor(source, self.target.load(folder, source))

    def encode(
        self,
        rows: Sequence[Row],
        processor: PairProcessor,
        config: DataConfig,
        skipped: list[SkippedRow],
        content: ContentHash | None = None,
    ) -> SplitData[Any]:
        """Encode rows. Rows that the model can't use are added to `skipped`.

        Of rows that are encoded in several parts, `content` is the hash of the parts before, to which these
        rows are added.
        """

        all_values = iter(self.source.encode_all(rows, processor.source, config))

        def encode_row(row: Row) -> tuple[Any, Any] | str:
            target, value = self.target.encode(row, processor.target, config), next(all_values)
            if isinstance(target, str):
                return target
            return value if isinstance(value, str) else self._match_places(value, target)

        usable, pairs = encode_or_skip(rows, encode_row, skipped)
        values, targets = [value for value, _ in pairs], [target for _, target in pairs]
        columns = self._places(values) | self.target.columns(targets)
        examples = self.source.examples(usable, values, processor.source, columns)
        references = self.target.references(usable)
        content = content or ContentHash()
        content.add(self._hashed(usable, references))
        return SplitData(
            self.source.names(usable),
            references,
            examples,
            self.source.lengths(usable, examples),
            self.source.sizes(usable, examples) | self.target.sizes(usable, targets),
            content.hexdigest(),
            self.source.content_hashes(usable),
        )

    def encode_unlabeled(
        self, rows: Sequence[Row], processor: PairProcessor, config: DataConfig, skipped: list[SkippedRow]
    ) -> tuple[list[Row], Any]:
        """Return the rows that the model can read, and their examples. Other rows are added to `skipped`."""
        usable, values = encode_or_skip(
            rows, lambda row: self.source.encode_unlabeled(row, processor.source, config), skipped
        )
        return usable, self.source.examples(usable, values, processor.source, self._places(values))

    def _places(self, values: list[Any]) -> dict[str, Column]:
        """Return the column of the places that have labels. Empty unless each place has a label."""
        if not self.target.each_place:
            return {}
        return {"places": RaggedArray.from_rows(map(self.source.places, values))}

    def _match_places(self, value: Any, target: Any) -> tuple[Any, Any] | str:
        """Return both arguments, or the reason why the target does not label each place of the source."""
        if not self.target.each_place or (count := len(self.source.places(value))) == len(target):
            return value, target
        return (
            f"{len(target)} labels for {count} {self.source.place}s; give each {self.source.place} one label"
        )

    def _hashed(self, rows: Sequence[Row], references: list[Any]) -> Iterator[Any]:
        """Yield the content of each row that the sha256 of the split covers."""
        if not self.target.field:
            return map(self.source.identity, rows)
        return map(self.source.hashed, rows, references)
