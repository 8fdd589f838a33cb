"""From what the user typed to token arrays: the one entry point that everything later calls."""

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from foveal.config import DataConfig
from foveal.core.errors import RunFailed, UserError
from foveal.core.log import Say
from foveal.data.core.hash_split import Part, Shares, split
from foveal.data.core.prepared_data import Prepared
from foveal.data.datasets.dataset_cache import located
from foveal.data.text.corpus import Document, Folder, Source, Table, open_source
from foveal.data.text.token_store import Reading, Store, TokenArray, build_store, open_store
from foveal.data.text.tokenizers import Tokenizer, make_tokenizer
from foveal.data.text.unknown_tokens import say_left_out
from foveal.store.cache import cache_folder, locked
from foveal.store.durable import replace_file

FORMAT = 1
"""Changes with the rules of splitting, joining and storing, so that older stores are not used."""


Text = Prepared[Tokenizer, TokenArray]
"""A corpus. Its facts: `skipped` (why each file was), and for each part its documents, characters (with the
blank lines between documents), tokens, sha256 of the text, and left_out (the most frequent characters without
a token) with left_out_characters (of them all)."""


@dataclass(frozen=True)
class Corpus:
    """`cut` is divided by `shares`; `given` are whole parts."""

    cut: Source
    shares: Shares
    given: Mapping[Part, Source]

    def documents(self) -> Iterator[tuple[Part, Document]]:
        whole = ((part, document) for part, source in self.given.items() for document in source.documents())
        return chain(split(self.cut, self.shares), whole)

    @property
    def sources(self) -> tuple[Source, ...]:
        return (self.cut, *self.given.values())

    def stamp(self, recipe: str) -> str:
        """Equal as long as no file's size and time of change, no rule and no setting have changed."""
        files = [
            [(str(path.absolute()), path.stat().st_size, path.stat().st_mtime_ns) for path in source.files]
            for source in self.sources
        ]
        columns = [getattr(source, "column", None) for source in self.sources]
        return _key(FORMAT, recipe, files, columns, list(self.given), list(self.shares.items()))


def prepare(
    data: str,
    config: DataConfig,
    valid: str | None,
    test: str | None,
    say: Say,
    tokenizer: Tokenizer | None = None,
) -> Text:
    """Token arrays of DATA (a path, else a name of the catalogue), made once and then found in the cache.

    Where `valid` or `test` is given nothing at all is cut from DATA; the set that is not given is None.
    `tokenizer`: to be used, rather than one made from the training text.
    Errors: UserError names the file, and where it can the line, and how to mend it.
    """
    given = {part: path for part, path in (("valid", valid), ("test", test)) if path is not None}
    shares = {} if given else {"valid": config.valid, "test": config.test}
    corpus = Corpus(
        cut=_find(data, config.column, say),
        shares={part: share for part, share in shares.items() if share},
        given={part: _find(path, config.column, say) for part, path in given.items()},
    )
    store, skipped = _stored(corpus, config, tokenizer, say)
    for part in ("train", *corpus.shares, *corpus.given):
        if not store.facts.get(part, {}).get("tokens"):
            alike = " (equal rows stay in one part)" if isinstance(corpus.cut, Table) else ""
            raise UserError(_nothing_in(part, given.get(part, data), part in given, alike))
    _say_losses(skipped, store.facts, say)
    return Prepared(
        inputs=store.tokenizer,
        train=store.tokens["train"],
        valid=store.tokens.get("valid"),
        test=store.tokens.get("test"),
        facts={"source": data, "skipped": skipped, "parts": store.facts},
    )


def prepare_held_out(
    data: str, column: str, tokenizer: Tokenizer, say: Say
) -> tuple[TokenArray, dict[str, Any]]:
    """The tokens of all of DATA, and one flat table of facts: those of `prepare` and of its only part."""
    corpus = Corpus(cut=_find(data, column, say), shares={}, given={})
    store, skipped = _stored(corpus, DataConfig(), tokenizer, say)
    facts = store.facts.get("train", {})
    if not facts.get("tokens"):
        raise UserError(f"{data}: holds no text, or none of its characters occur in the model's vocabulary")
    _say_losses(skipped, {data: facts}, say)
    return store.tokens["train"], {"source": data, "skipped": skipped, **facts}


def _find(data: str, column: str, say: Say) -> Source:
    """What DATA names: an existing path, else an entry of the catalogue."""
    return open_source(Path(located(data, say)), column)


def _stored(
    corpus: Corpus, config: DataConfig, tokenizer: Tokenizer | None, say: Say
) -> tuple[Store, list[str]]:
    """The corpus's store, found or built, and the reasons for files that were skipped.

    Files that look unchanged are not read again. Else the text is read once to know it (its hash, its
    vocabulary) and, if the cache has no store of that text, a second time to write its tokens.
    """
    recipe = tokenizer.digest if tokenizer else f"{config.tokenizer}-{config.vocabulary}"
    note = cache_folder() / "seen" / f"{corpus.stamp(recipe)}.json"
    seen = _read_note(note)
    if seen and (store := open_store(cache_folder() / "tokens" / seen["store"])):
        return store, seen["skipped"]

    reading = Reading(corpus.documents(), "reading", say)
    training = (piece for part, piece in reading if part == "train")
    tokenizer = tokenizer or make_tokenizer(config.tokenizer, config.vocabulary, training)
    if tokenizer.size < 2:
        raise UserError(
            f"{corpus.cut.path}: its training part has fewer than two different characters, "
            "so there is nothing to learn; give more text"
        )
    for _ in training:
        pass  # to the end, whatever the tokenizer has left unread
    facts = reading.facts()
    key = _key(FORMAT, tokenizer.digest, {part: fact["sha256"] for part, fact in facts.items()})
    folder = cache_folder() / "tokens" / key
    with locked(folder):
        store = open_store(folder)
        if store is None:
            shutil.rmtree(folder, ignore_errors=True)
            build_store(folder, Reading(corpus.documents(), "tokenising", say), tokenizer, facts)
            store = open_store(folder)
    if store is None:
        raise RunFailed(f"{folder}: what was written can't be read back; check the disk")
    skipped = [why for source in corpus.sources if isinstance(source, Folder) for why in source.skipped]
    with locked(note):
        replace_file(note, json.dumps({"store": key, "skipped": skipped}).encode())
    return store, skipped


def _read_note(path: Path) -> dict[str, Any] | None:
    try:
        note = json.loads(path.read_bytes())
        return note if {"store", "skipped"} <= set(note) else None
    except (OSError, ValueError, TypeError):
        return None


def _key(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _nothing_in(part: Part, data: str, given: bool, alike: str) -> str:
    if part == "train":
        return (
            f"{data}: no text to train on{alike}; give more text, or keep less of it back "
            "(data.valid, data.test)"
        )
    if given:
        return f"{data}: none of its characters occur in the training text; give text of the same kind"
    return f"{data}: too little text to cut a {part} set from{alike}; give more, or set data.{part}=0"


def _say_losses(skipped: list[str], facts: dict[str, dict[str, Any]], say: Say) -> None:
    if skipped:
        say(f"skipped {len(skipped)} file(s) that are not UTF-8 text, the first: {skipped[0]}")
    say_left_out(facts, say)
