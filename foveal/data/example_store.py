"""Prepared examples of DATA in the cache: read, split and encoded once as a stream, then memory-mapped.

A store is a folder with the columns of each split, the files of the processor, and `facts.json`, which has the
hashes of all files, its own among them. Rows that were read are in a folder of their own until the store is
complete, so that a preparation that was killed goes on from there.
"""

import hashlib
import json
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

from foveal.config import DataConfig
from foveal.core.errors import RunFailed, UserError
from foveal.core.log import Log
from foveal.data.core.columns import ColumnsWriter, LazySequence, json_column, open_columns, read_json
from foveal.data.core.examples import Examples
from foveal.data.core.hash_split import SPLITS, SplitName
from foveal.data.core.length_groups import GroupedExamples, LengthGroups, group_by_length
from foveal.data.core.prepared_data import PreparedData, ReusedProcessors
from foveal.data.core.row_table import ListedRows, RowFiles, RowSink, RowTable, StoredRows
from foveal.data.core.rows import Row, SkippedRow
from foveal.data.core.split_data import ContentHash, SplitData
from foveal.data.files.data_part import DataPart
from foveal.data.pairs.pair import PairFormat, PairProcessor
from foveal.store.cache import cache_folder, file_lock
from foveal.store.durable import atomic_folder, atomic_write, file_sha256, write_synced
from foveal.store.regular_files import read_regular
from foveal.store.sealed_json import open_json, seal_json

STORE_VERSION = 1
"""Changes with the rules of reading, splitting, encoding and storing, so that older stores are not used."""
MIN_STORED_BYTES = 1 << 22
"""Bytes of data from which on examples are stored. Less is prepared again in about the same time."""
CHUNK_ROWS = 4096
"""Rows that are encoded at a time."""
PROGRESS_SECONDS = 5.0
"""Seconds between two lines of progress."""
FACTS_FILE, PROCESSOR_FOLDER = "facts.json", "processor"
EXAMPLES, TEXTS, GROUPS = "examples", "texts", "groups"
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
    """What `_open_split` needs to open each split that was encoded."""

    def read(self, read: ReadRows) -> tuple[dict[SplitName, RowTable], list[SkippedRow]]:
        facts = _open_sealed(self.rows)
        if facts is None:
            shutil.rmtree(self.rows, ignore_errors=True)
            with atomic_folder(self.rows) as folder:
                facts = _write_rows(folder, read)
                _seal(folder, facts)
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
            examples.write(part.examples.columns)
            texts.write({"source": json_column(part.sources), "reference": json_column(part.references)})
            texts.write({"length": np.array(part.lengths, np.int64)})
            sizes.update(part.sizes)
            size += len(part)
            if time.monotonic() > last_log + PROGRESS_SECONDS:
                last_log = time.monotonic()
                self.log(f"{split}: encoded {start:,} of {len(rows):,} rows")
        facts: dict[str, Any] = {EXAMPLES: examples.close(), TEXTS: texts.close(), "size": size}
        facts |= {"sizes": dict(sizes), "sha256": content.hexdigest()}
        facts[GROUPS] = _write_groups(self.new, split, facts) if size else {}
        self.splits[split] = facts
        return _open_split(self.new, split, facts)


@dataclass(frozen=True)
class ExampleStore:
    """The store of the examples of some data."""

    data_format: PairFormat
    config: DataConfig
    data_key: str
    """A hash of the files of the data, of the settings and of the rules."""
    processor: PairProcessor | None
    """The processor that the rows are encoded with; None if one is fitted to them."""
    reused: ReusedProcessors

    def load_or_build(
        self, build: Callable[[Workspace, Log], PreparedData[PairProcessor, Any]], log: Log
    ) -> PreparedData[PairProcessor, Any]:
        """Return the examples from the cache. If they are not there, write those that `build` prepares.

        What was logged then is logged again. Of several processes one builds, and the others wait for it.
        """
        folder = self._folder()
        with file_lock(folder):
            prepared = self._open(folder, log)
            if prepared is None:
                self._build(folder, build, log)
                prepared = self._open(folder, lambda line: None)
        if prepared is None:
            raise RunFailed(f"{folder}: the examples just written can't be read back; check the disk")
        return prepared

    def _folder(self) -> Path:
        """Return the folder of the store. A processor may have been fitted to these data before."""
        folder = cache_folder() / "examples"
        if self.processor is None:
            return folder / _key(self.data_key, _reused_digests(self.reused))
        own = self._processor_key(self.processor)
        try:
            return folder / open_json(read_regular(folder / f"{own}.json"), own)["store"]
        except (UserError, KeyError, TypeError):
            return folder / own

    def _processor_key(self, processor: PairProcessor) -> str:
        files = self.data_format.files(processor)
        return _key(self.data_key, {name: _sha256(files[name]) for name in sorted(files)})

    def _build(
        self, folder: Path, build: Callable[[Workspace, Log], PreparedData[PairProcessor, Any]], log: Log
    ) -> None:
        rows, lines, splits = cache_folder() / "rows" / self.data_key, list[str](), dict[str, Any]()
        rows.parent.mkdir(parents=True, exist_ok=True)

        def log_and_keep(line: str) -> None:
            lines.append(line)
            log(line)

        shutil.rmtree(folder, ignore_errors=True)
        with atomic_folder(folder) as new:
            prepared = build(InFiles(rows, new, log, splits), log_and_keep)
            for name, content in self.data_format.files(prepared.processor).items():
                path = new / PROCESSOR_FOLDER / name
                path.parent.mkdir(parents=True, exist_ok=True)
                write_synced(path, content)
            skipped = [(row.location, row.reason) for row in prepared.skipped]
            _seal(new, {"facts": prepared.facts, "skipped": skipped, "splits": splits, "lines": lines})
        if self.processor is None:
            alias = folder.with_name(f"{self._processor_key(prepared.processor)}.json")
            atomic_write(alias, seal_json({"store": folder.name}))
        shutil.rmtree(rows, ignore_errors=True)

    def _open(self, folder: Path, log: Log) -> PreparedData[PairProcessor, Any] | None:
        """Return the examples of a store, and log what was logged when it was written.

        Return None if there is no store. If it is damaged, a line names the file.
        """
        facts = _open_sealed(folder, log)
        if facts is None:
            return None
        processor = self.processor or self.data_format.load_processor(folder / PROCESSOR_FOLDER)
        splits = {split: _open_split(folder, split, facts["splits"][split]) for split in facts["splits"]}
        for line in facts["lines"]:
            log(line)
        skipped = tuple(SkippedRow(*row) for row in facts["skipped"])
        train, valid, test = map(splits.get, SPLITS)
        return PreparedData(processor, train, valid, test, facts["facts"], skipped)


def find_store(
    data_format: PairFormat,
    parts: dict[SplitName, DataPart],
    config: DataConfig,
    processor: PairProcessor | None,
    reused: ReusedProcessors,
) -> ExampleStore | None:
    """Return the store for data; None if the data are few, or their rows are not stored."""
    if not all(vars(type(each)).get("is_stored") for each in (data_format.source, data_format.target)):
        return None  # also for subclasses, as those of plugins, whose code changes unseen
    files = {split: _list_files(part) for split, part in parts.items()}
    stats = {split: [(str(path.absolute()), path.stat()) for path in files[split]] for split in files}
    if sum(stat.st_size for each in stats.values() for _, stat in each) < MIN_STORED_BYTES:
        return None
    key = _key(
        STORE_VERSION,
        [type(each).__qualname__ for each in (data_format.source, data_format.target)],
        {split: [(name, s.st_size, s.st_mtime_ns) for name, s in stats[split]] for split in stats},
        {split: parts[split].encoding for split in parts},
        config.model_dump(mode="json", exclude={"batch_tokens"}),
        data_format.target.column(config),
    )
    return ExampleStore(data_format, config, key, processor, reused)


def _list_files(part: DataPart) -> list[Path]:
    """Return the files of a part that are on disk: its own, or those of its folder or archive."""
    if part.is_disk_folder:
        return [part.path / name for name in part.listing.walk()]
    files = part.aligned or part.files
    return [next(path for path in (file, *file.parents) if path.exists()) for file in files]


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
    return writer.close() | {"rows.values": (kind.str, [])}


def _open_split(folder: Path, split: SplitName, facts: dict[str, Any]) -> SplitData[Any]:
    columns = open_columns(folder, f"{split}-{EXAMPLES}", facts[EXAMPLES])
    texts = open_columns(folder, f"{split}-{TEXTS}", facts[TEXTS])
    groups: dict[str, Any] = open_columns(folder, f"{split}-{GROUPS}", facts[GROUPS])
    size, lengths = facts["size"], texts["length"]
    sources, references = (
        LazySequence(size, partial(read_json, texts[name])) for name in ("source", "reference")
    )
    examples = Examples(columns)
    if groups:
        groups |= {name: groups[name].astype(np.int64) for name in ("lengths", "starts")}
        examples = GroupedExamples(columns, LengthGroups(**groups))
    return SplitData(
        sources,
        references,
        examples,
        LazySequence(size, lambda row: int(lengths[row])),
        facts["sizes"],
        facts["sha256"],
    )


def _seal(folder: Path, facts: dict[str, Any]) -> None:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    hashes = {path.relative_to(folder).as_posix(): file_sha256(path) for path in paths}
    write_synced(folder / FACTS_FILE, seal_json(facts | {"files": hashes}))


def _open_sealed(folder: Path, log: Log = lambda line: None) -> dict[str, Any] | None:
    """Return the facts of a folder whose files are as they were sealed; else None, and log which is not."""
    if not folder.is_dir():
        return None
    path = folder / FACTS_FILE
    try:
        facts = open_json(read_regular(path), str(path))
        for name, sha256 in facts["files"].items():
            path = folder / name
            if file_sha256(path) != sha256:
                raise ValueError
        return facts
    except (OSError, ValueError, KeyError, TypeError, AttributeError, UserError):
        log(f"{path}: damaged or edited, so the data are prepared again")
        return None


def _reused_digests(reused: ReusedProcessors) -> list[Any]:
    source = None if reused.source is None else reused.source.to_json()
    return [
        None if source is None else _sha256(source.encode() if isinstance(source, str) else source),
        reused.labels,
    ]


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _key(*parts: object) -> str:
    return _sha256(json.dumps(parts, sort_keys=True).encode())[:32]
