"""Token arrays: a corpus as numbers in files that are mapped into memory, so its size does not matter.

A store is a folder: `<part>.bin` (the tokens, unsigned, little-endian, of the smallest width that holds
the vocabulary), `tokenizer.json`, and `facts.json`, written once and never changed.
"""

import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveal.core.errors import UserError
from foveal.data.core.hash_split import SPLITS, SplitName
from foveal.data.text.corpus import Document
from foveal.data.text.tokenizers import Tokenizer, load_tokenizer
from foveal.data.text.unknown_tokens import unknown_token_facts
from foveal.store.durable import atomic_folder, file_sha256, write_synced

TokenArray = NDArray[Any]
"""(N,) unsigned token numbers, read only."""
DOCUMENT_SEPARATOR = "\n\n"
"""Stands between the documents of a part, for every tokenizer alike: a blank line."""
PROGRESS_SECONDS = 5.0
"""Seconds between two lines of progress."""


@dataclass
class TextCounts:
    """What one part of a corpus holds. Characters include the separators between documents."""

    documents: int = 0
    characters: int = 0
    sha256: Any = field(default_factory=hashlib.sha256)

    def add(self, piece: str) -> int:
        """Count a piece; its length in bytes."""
        data = piece.encode()
        self.sha256.update(data)
        self.characters += len(piece)
        return len(data)

    def facts(self) -> dict[str, Any]:
        return {
            "documents": self.documents,
            "characters": self.characters,
            "sha256": self.sha256.hexdigest(),
        }


class CorpusReader:
    """One pass over a corpus: yields (part, piece of its text) and tallies what it has yielded."""

    def __init__(
        self, documents: Iterable[tuple[SplitName, Document]], activity: str, log: Callable[[str], None]
    ):
        self.splits: dict[SplitName, TextCounts] = {}
        self._documents, self._activity, self._log = documents, activity, log

    def __iter__(self) -> Iterator[tuple[SplitName, str]]:
        size, last = 0, time.monotonic()
        for part, document in self._documents:
            tally = self.splits.setdefault(part, TextCounts())
            if tally.documents:
                tally.add(DOCUMENT_SEPARATOR)
                yield part, DOCUMENT_SEPARATOR
            tally.documents += 1
            for piece in document.pieces:
                size += tally.add(piece)
                yield part, piece
                if time.monotonic() > last + PROGRESS_SECONDS:
                    last = time.monotonic()
                    self._log(f"{self._activity}: {size / 1e6:,.0f} MB of text so far")

    def facts(self) -> dict[SplitName, dict[str, Any]]:
        return {part: self.splits[part].facts() for part in SPLITS if part in self.splits}


@dataclass(frozen=True)
class TokenStore:
    """An opened store. `facts[part]`: documents, characters, tokens, sha256 of the text, left_out."""

    tokenizer: Tokenizer
    tokens: dict[SplitName, TokenArray]
    facts: dict[SplitName, dict[str, Any]]


def build_token_store(
    folder: Path, reading: CorpusReader, tokenizer: Tokenizer, expected: dict[SplitName, Any]
) -> None:
    """Write the tokens of `reading`; `expected` are the facts of an earlier reading of the same text."""
    width = np.min_scalar_type(tokenizer.size - 1).newbyteorder("<")
    left_out: dict[SplitName, Counter[str]] = {part: Counter() for part in expected}
    with atomic_folder(folder) as new:
        with ExitStack() as stack:
            files = {part: stack.enter_context((new / f"{part}.bin").open("wb")) for part in expected}
            for part, piece in reading:
                if part not in files:
                    break
                ids, unknown = tokenizer.encode_known(piece)
                files[part].write(ids.astype(width).data)
                left_out[part] += unknown
            for file in files.values():
                file.flush()
                os.fsync(file.fileno())
        facts = reading.facts()
        if facts != expected:
            raise UserError("the text changed while it was read; start again when nothing writes to it")
        for part, fact in facts.items():
            path = new / f"{part}.bin"
            fact["tokens"] = path.stat().st_size // width.itemsize
            fact |= unknown_token_facts(left_out[part])
        tokenizer.save(new)
        hashes = {path.name: file_sha256(path) for path in sorted(new.iterdir())}
        content = {"width": width.str, "parts": facts, "files": hashes}
        write_synced(new / "facts.json", json.dumps(content, indent=1).encode())


def open_token_store(folder: Path) -> TokenStore | None:
    """The store in `folder`; None if there is none, or it is not whole: every file is held to its hash."""
    try:
        content = json.loads((folder / "facts.json").read_bytes())
        width, facts, hashes = np.dtype(content["width"]), content["parts"], content["files"]
        if any(file_sha256(folder / name) != hashes[name] for name in hashes):
            return None
        return TokenStore(
            tokenizer=load_tokenizer(folder),
            tokens={part: _memory_map(folder / f"{part}.bin", width) for part in facts},
            facts=facts,
        )
    except (OSError, ValueError, KeyError, TypeError, UserError):
        return None


def _memory_map(path: Path, width: np.dtype[Any]) -> TokenArray:
    if path.stat().st_size == 0:
        return np.zeros(0, width)
    return np.memmap(path, width, mode="r")
