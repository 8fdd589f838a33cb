"""Where a preparation has its rows and examples: in memory, or in files that are written as a stream."""

import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from foveal.core.log import Log
from foveal.data.core.columns import ColumnsWriter, LazySequence, json_column, open_columns, read_json
from foveal.data.core.examples import Examples
from foveal.data.core.hash_split import SplitName
from foveal.data.core.length_groups import GroupedExamples, LengthGroups, group_by_length
from foveal.data.core.row_table import ListedRows, RowFiles, RowSink, RowTable, StoredRows
from foveal.data.core.rows import Row, SkippedRow
from foveal.data.core.split_data import ContentHash, SplitData
from foveal.store.durable import atomic_folder
from foveal.store.sealed_folder import open_sealed_folder, seal_folder

CHUNK_ROWS = 4096
"""Rows that are encoded at a time."""
PROGRESS_SECONDS = 5.0
"""Seconds between two lines of progress."""
EXAMPLES, TEXTS, GROUPS = "examples", "texts", "groups"
"""The groups of columns of a split."""
ReadRows = Callable[[list[SkippedRow], Callable[[], RowSink]], dict[SplitName, RowTable]]
"""Reads the rows of each split into new sinks. Rows that can't be used are added to the list."""
EncodeRows = Callable[[Sequence[Row], list[SkippedRow], ContentHash], SplitData[Any]]
"""Encodes rows, and adds them to a hash. Rows that can't be used are added to the list."""


@runtime_checkable
class Workspace(Protocol):
    """Where the rows and examples of a preparation are."""

    def read(self, read: ReadRows) -> tuple[dict[SplitName, RowTable], list[SkippedRow]]:
        """Return the rows of each split, and the rows that can't be used."""

    def encode(
        self, split: SplitName, rows: RowTable, encode: EncodeRows, skipped: list[SkippedRow]
    ) -> SplitData[Any]:
        """Return the encoded rows of a split."""


class InMemory:
    """Rows and examples in memory."""

    def read(self, read: ReadRows) -> tuple[dict[SplitName, RowTable], list[SkippedRow]]:
        skipped: list[SkippedRow] = []
        return read(skipped, ListedRows), skipped

    def encode(
        self, split: SplitName, rows: RowTable, encode: EncodeRows, skipped: list[SkippedRow]
    ) -> SplitData[Any]:
        return encode(rows, skipped, ContentHash())


@dataclass(frozen=True)
class InFiles:
    """Rows in the folder `rows`, which a later process can go on from, and examples in the folder `new`."""

    rows: Path
    new: Path
    log: Log
    splits: dict[SplitName, dict[str, Any]]
    """What `open_split` needs to open each split that was encoded."""

    def read(self, read: ReadRows) -> tuple[dict[SplitName, RowTable], list[SkippedRow]]:
        facts = open_sealed_folder(self.rows, self.log)
        if facts is None:
            shutil.rmtree(self.rows, ignore_errors=True)
            with atomic_folder(self.rows) as folder:
                facts = _write_rows(folder, read)
                seal_folder(folder, facts)
        tables: dict[SplitName, RowTable] = {
            split: StoredRows(self.rows, table) for split, table in facts["tables"].items()
        }
        return tables, [SkippedRow(*row) for row in facts["skipped"]]

    def encode(
        self, split: SplitName, rows: RowTable, encode: EncodeRows, skipped: list[SkippedRow]
    ) -> SplitData[Any]:
        if not len(rows):
            return encode(rows, skipped, ContentHash())
        examples, texts = (ColumnsWriter(self.new, f"{split}-{kind}") for kind in (EXAMPLES, TEXTS))
        content, sizes, size, last_log = ContentHash(), Counter[str](), 0, time.monotonic()
        for start in range(0, len(rows), CHUNK_ROWS):
            part = encode(rows[start : start + CHUNK_ROWS], skipped, content)
            part.examples.write(examples, part.content_hashes)
            texts.write({"source": json_column(part.sources), "reference": json_column(part.references)})
            texts.write({"content": json_column(part.content_hashes)})
            texts.write({"length": np.array(part.lengths, np.int64)})
            sizes.update(part.sizes)
            size += len(part)
            if time.monotonic() > last_log + PROGRESS_SECONDS:
                last_log = time.monotonic()
                self.log(f"{split}: encoded {start:,} of {len(rows):,} rows")
        facts: dict[str, Any] = {EXAMPLES: examples.close(), TEXTS: texts.close(), "size": size}
        columns = open_columns(self.new, f"{split}-{EXAMPLES}", facts[EXAMPLES])
        of_all = dict(sizes) | part.examples.in_files(columns).sizes
        facts |= {"sizes": of_all, "sha256": content.hexdigest()}
        grouped = size and part.examples.is_grouped
        facts[GROUPS] = _write_groups(self.new, split, facts) if grouped else {}
        self.splits[split] = facts
        return open_split(self.new, split, facts, part.examples)


def _write_rows(folder: Path, read: ReadRows) -> dict[str, Any]:
    """Read the rows of each split into files. Return what is needed to open them."""
    skipped: list[SkippedRow] = []
    numbers = count()
    tables = read(skipped, lambda: RowFiles(folder, str(next(numbers))))
    return {
        "tables": {split: table.facts for split, table in tables.items() if isinstance(table, StoredRows)},
        "skipped": [(row.location, row.reason) for row in skipped],
    }


def _write_groups(folder: Path, split: SplitName, facts: dict[str, Any]) -> dict[str, Any]:
    """Write the groups of examples of equal lengths. Return the types of their files."""
    columns = open_columns(folder, f"{split}-{EXAMPLES}", facts[EXAMPLES])
    size, prefix = facts["size"], f"{split}-{GROUPS}"
    kind = np.min_scalar_type(size).newbyteorder("<")
    rows = np.memmap(folder / f"{prefix}.rows.values", kind, "w+", shape=(size,))
    groups = group_by_length(columns, rows)
    rows.flush()
    writer = ColumnsWriter(folder, prefix)
    writer.write({"lengths": groups.lengths, "starts": groups.starts})
    return writer.close() | {"rows.values": [kind.str, []]}


def open_split(folder: Path, split: SplitName, facts: dict[str, Any], kind: Examples) -> SplitData[Any]:
    """Return the memory-mapped examples of a split that `InFiles` encoded, which are of the same kind as
    others."""
    columns = open_columns(folder, f"{split}-{EXAMPLES}", facts[EXAMPLES])
    texts = open_columns(folder, f"{split}-{TEXTS}", facts[TEXTS])
    groups = open_columns(folder, f"{split}-{GROUPS}", facts[GROUPS])
    lengths = texts["length"]
    sources, references, contents = (
        LazySequence(len(texts[name]), partial(read_json, texts[name]))
        for name in ("source", "reference", "content")
    )
    examples = kind.in_files(columns)
    if groups:
        groups |= {name: groups[name].astype(np.int64) for name in ("lengths", "starts")}
        examples = GroupedExamples(columns, LengthGroups(**groups))
    return SplitData(
        sources,
        references,
        examples,
        LazySequence(len(lengths), lambda start, stop: lengths[start:stop].tolist()),
        facts["sizes"],
        facts["sha256"],
        contents,
    )
