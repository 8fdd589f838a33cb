"""Prepared examples of DATA in the cache: read, split and encoded once as a stream, then memory-mapped.

A store is a folder with the columns of each split, the files of the processor, and `facts.json`, which has
the hashes of all files, its own among them. Rows that were read stay in a folder of their own until the store
is complete, so that a preparation that was killed goes on from there.
"""

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foveal.config import DataConfig
from foveal.core.errors import RunFailed, UserError
from foveal.core.log import Log
from foveal.data.core.hash_split import SPLITS, SplitName
from foveal.data.core.prepared_data import PreparedData, ReusedProcessors
from foveal.data.core.rows import SkippedRow
from foveal.data.files.data_part import DataPart
from foveal.data.pairs.pair import PairFormat, PairProcessor
from foveal.data.workspace import InFiles, Workspace, open_split
from foveal.store.cache import cache_folder, file_lock
from foveal.store.durable import atomic_folder, atomic_write, write_synced
from foveal.store.regular_files import read_regular
from foveal.store.sealed_folder import open_sealed_folder, seal_folder
from foveal.store.sealed_json import open_json, seal_json

STORE_VERSION = 3
"""Changes with the rules of reading, splitting, encoding and storing, so that older stores are not used."""
OF_BATCHES: dict[str, bool | set[str]] = {
    "batch_tokens": True,
    "image": {"batch_size", "tta", "tta_scales"},
    "augment": True,
    "series": {"batch_size", "jitter", "scaling"},
}
"""Settings of batches, which prepared examples do not depend on."""
MIN_STORED_BYTES = 1 << 22
"""Bytes of data from which on examples are stored. Less is prepared again in about the same time."""
PROCESSOR_FOLDER = "processor"


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
            seal_folder(new, {"facts": prepared.facts, "skipped": skipped, "splits": splits, "lines": lines})
        if self.processor is None:
            alias = folder.with_name(f"{self._processor_key(prepared.processor)}.json")
            atomic_write(alias, seal_json({"store": folder.name}))
        shutil.rmtree(rows, ignore_errors=True)

    def _open(self, folder: Path, log: Log) -> PreparedData[PairProcessor, Any] | None:
        """Return the examples of a store, and log what was logged when it was written.

        Return None if there is no store. If it is damaged, a line names the file.
        """
        facts = open_sealed_folder(folder, log)
        if facts is None:
            return None
        processor = self.processor or self.data_format.load_processor(folder / PROCESSOR_FOLDER)
        kind = self.data_format.source.examples((), [], processor.source, {})
        splits = {split: open_split(folder, split, each, kind) for split, each in facts["splits"].items()}
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
    stats = {split: [(str(path.resolve()), path.stat()) for path in files[split]] for split in files}
    if sum(stat.st_size for each in stats.values() for _, stat in each) < MIN_STORED_BYTES:
        return None
    key = _key(
        STORE_VERSION,
        [type(each).__qualname__ for each in (data_format.source, data_format.target)],
        {split: [(name, s.st_size, s.st_mtime_ns) for name, s in stats[split]] for split in stats},
        {split: parts[split].encoding for split in parts},
        config.model_dump(mode="json", exclude=OF_BATCHES),
        data_format.target.column(config),
    )
    return ExampleStore(data_format, config, key, processor, reused)


def _list_files(part: DataPart) -> list[Path]:
    """Return the files of a part that are on disk: its own, or those of its folder or archive."""
    if part.is_disk_folder:
        return [part.path / name for name in part.listing.walk()]
    files = part.aligned or part.files
    return [next(path for path in (file, *file.parents) if path.exists()) for file in files]


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
