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
from foveal.data.core.hash_split import PARTS, Part
from foveal.data.text.corpus import Document
from foveal.data.text.tokenizers import Tokenizer, load_tokenizer
from foveal.data.text.unknown_tokens import facts_of
from foveal.store.durable import digest, new_folder, write_new

TokenArray = NDArray[Any]
"""(N,) unsigned token numbers, read only."""
SEPARATOR = "\n\n"
"""Stands between the documents of a part, for every tokenizer alike: a blank line."""
BEAT = 5.0
"""Seconds between two lines of progress."""


@dataclass
class Tally:
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


class Reading:
    """One pass over a corpus: yields (part, piece of its text) and tallies what it has yielded."""

    def __init__(self, documents: Iterable[tuple[Part, Document]], doing: str, say: Callable[[str], None]):
        self.parts: dict[Part, Tally] = {}
        self._documents, self._doing, self._say = documents, doing, say

    def __iter__(self) -> Iterator[tuple[Part, str]]:
        size, last = 0, time.monotonic()
        for part, document in self._documents:
            tally = self.parts.setdefault(part, Tally())
            if tally.documents:
                tally.add(SEPARATOR)
                yield part, SEPARATOR
            tally.documents += 1
            for piece in document.pieces:
                size += tally.add(piece)
                yield part, piece
                if time.monotonic() > last + BEAT:
                    last = time.monotonic()
                    self._say(f"{self._doing}: {size / 1e6:,.0f} MB of text so far")

    def facts(self) -> dict[Part, dict[str, Any]]:
        return {part: self.parts[part].facts() for part in PARTS if part in self.parts}


@dataclass(frozen=True)
class Store:
    """An opened store. `facts[part]`: documents, characters, tokens, sha256 of the text, left_out."""

    tokenizer: Tokenizer
    tokens: dict[Part, TokenArray]
    facts: dict[Part, dict[str, Any]]


def build_store(folder: Path, reading: Reading, tokenizer: Tokenizer, expected: dict[Part, Any]) -> None:
    """Write the tokens of `reading`; `expected` are the facts of an earlier reading of the same text."""
    width = np.min_scalar_type(tokenizer.size - 1).newbyteorder("<")
    left_out: dict[Part, Counter[str]] = {part: Counter() for part in expected}
    with new_folder(folder) as new:
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
            fact |= facts_of(left_out[part])
        tokenizer.save(new)
        hashes = {path.name: digest(path) for path in sorted(new.iterdir())}
        content = {"width": width.str, "parts": facts, "files": hashes}
        write_new(new / "facts.json", json.dumps(content, indent=1).encode())


def open_store(folder: Path) -> Store | None:
    """The store in `folder`; None if there is none, or it is not whole: every file is held to its hash."""
    try:
        content = json.loads((folder / "facts.json").read_bytes())
        width, facts, hashes = np.dtype(content["width"]), content["parts"], content["files"]
        if any(digest(folder / name) != hashes[name] for name in hashes):
            return None
        return Store(
            tokenizer=load_tokenizer(folder),
            tokens={part: _mapped(folder / f"{part}.bin", width) for part in facts},
            facts=facts,
        )
    except (OSError, ValueError, KeyError, TypeError, UserError):
        return None


def _mapped(path: Path, width: np.dtype[Any]) -> TokenArray:
    if path.stat().st_size == 0:
        return np.zeros(0, width)
    return np.memmap(path, width, mode="r")
