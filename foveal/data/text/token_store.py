"""Token arrays: the tokens of a corpus in memory-mapped files, so a corpus can have any size.

A store is a folder with `<split>.bin` (unsigned little-endian tokens of the smallest width for the
vocabulary), `tokenizer.json` and `facts.json`, which has the hashes of all files, its own among them. The
files are written once and never change.
"""

import hashlib
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
from foveal.store.regular_files import read_regular
from foveal.store.sealed import open_json, seal_json

TokenArray = NDArray[Any]
"""Unsigned token ids (N,), read-only."""
DOCUMENT_SEPARATOR = "\n\n"
"""The text between two documents of a split, for every tokenizer: a blank line."""
FACTS_FILE = "facts.json"
PROGRESS_SECONDS = 5.0
"""Seconds between two lines of progress."""


@dataclass
class TextCounts:
    """Counts and hash of a split of a corpus. Characters include the separators between documents."""

    documents: int = 0
    characters: int = 0
    sha256: Any = field(default_factory=hashlib.sha256)

    def add(self, piece: str) -> int:
        """Add a piece of text. Return its length in bytes."""
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
    """A single pass over a corpus. Yields (split, piece of text), and counts the pieces."""

    def __init__(
        self, documents: Iterable[tuple[SplitName, Document]], activity: str, log: Callable[[str], None]
    ):
        self.splits: dict[SplitName, TextCounts] = {}
        self._documents, self._activity, self._log = documents, activity, log

    def __iter__(self) -> Iterator[tuple[SplitName, str]]:
        size, last_log = 0, time.monotonic()
        for split, document in self._documents:
            counts = self.splits.setdefault(split, TextCounts())
            if counts.documents:
                counts.add(DOCUMENT_SEPARATOR)
                yield split, DOCUMENT_SEPARATOR
            counts.documents += 1
            for piece in document.pieces:
                size += counts.add(piece)
                yield split, piece
                if time.monotonic() > last_log + PROGRESS_SECONDS:
                    last_log = time.monotonic()
                    self._log(f"{self._activity}: {size / 1e6:,.0f} MB of text so far")

    def facts(self) -> dict[SplitName, dict[str, Any]]:
        return {split: self.splits[split].facts() for split in SPLITS if split in self.splits}


@dataclass(frozen=True)
class TokenStore:
    """An opened store. `facts[split]` has documents, characters, tokens, sha256 of the text, and left_out."""

    tokenizer: Tokenizer
    tokens: dict[SplitName, TokenArray]
    facts: dict[SplitName, dict[str, Any]]


def build_token_store(
    folder: Path, reader: CorpusReader, tokenizer: Tokenizer, expected: dict[SplitName, Any]
) -> None:
    """Write the tokens of `reader`. `expected` are the facts of an earlier pass over the same text.

    Raises: UserError: the text has changed since the earlier pass.
    """
    width = _token_width(tokenizer)
    unknown: dict[SplitName, Counter[str]] = {split: Counter() for split in expected}
    with atomic_folder(folder) as new:
        with ExitStack() as stack:
            files = {split: stack.enter_context((new / f"{split}.bin").open("wb")) for split in expected}
            for split, piece in reader:
                if split not in files:
                    break
                ids, unknown_in_piece = tokenizer.encode_known(piece)
                files[split].write(ids.astype(width).data)
                unknown[split] += unknown_in_piece
            for file in files.values():
                file.flush()
                os.fsync(file.fileno())
        facts = reader.facts()
        if facts != expected:
            raise UserError("the text changed while it was read; start again when nothing writes to it")
        for split, split_facts in facts.items():
            path = new / f"{split}.bin"
            split_facts["tokens"] = path.stat().st_size // width.itemsize
            split_facts |= unknown_token_facts(unknown[split], tokenizer.unit or "characters")
        tokenizer.save(new)
        hashes = {path.name: file_sha256(path) for path in sorted(new.iterdir())}
        content = {"width": width.str, "parts": facts, "files": hashes}
        write_synced(new / FACTS_FILE, seal_json(content))


def open_token_store(folder: Path) -> TokenStore | None:
    """Open the store in `folder`, and verify the hash of every file.

    Return None if the store is missing, damaged or edited.
    """
    try:
        content = open_json(read_regular(folder / FACTS_FILE), str(folder / FACTS_FILE))
        facts, hashes = content["parts"], content["files"]
        if any(file_sha256(folder / name) != hashes[name] for name in hashes):
            return None
        tokenizer = load_tokenizer(folder)
        width = _token_width(tokenizer)
        tokens = {split: _memory_map(folder / f"{split}.bin", width) for split in facts}
        if content["width"] != width.str or any(len(tokens[name]) != facts[name]["tokens"] for name in facts):
            return None
        return TokenStore(tokenizer, tokens, facts)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, UserError):
        return None


def _token_width(tokenizer: Tokenizer) -> np.dtype[Any]:
    """Return the smallest type for the ids of a tokenizer."""
    return np.min_scalar_type(tokenizer.size - 1).newbyteorder("<")


def _memory_map(path: Path, width: np.dtype[Any]) -> TokenArray:
    if path.stat().st_size == 0:
        return np.zeros(0, width)
    return np.memmap(path, width, mode="r")
