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
from foveal.core.log import Log
from foveal.data.core.hash_split import Fractions, SplitName
from foveal.data.core.prepared_data import PreparedData
from foveal.data.open import OpenedData, open_data
from foveal.data.text.corpus import CorpusSource, Document, TextFolder, TextTable, open_text_source
from foveal.data.text.corpus_split import split_documents
from foveal.data.text.token_store import (
    CorpusReader,
    TokenArray,
    TokenStore,
    build_token_store,
    open_token_store,
)
from foveal.data.text.tokenizers import Tokenizer, make_tokenizer
from foveal.data.text.unknown_tokens import log_unknown_tokens
from foveal.store.cache import cache_folder, file_lock
from foveal.store.durable import atomic_write

STORE_VERSION = 1
"""Changes with the rules of splitting, joining and storing, so that older stores are not used."""


PreparedCorpus = PreparedData[Tokenizer, TokenArray]
"""A corpus. Its facts: `skipped` (why each file was), and for each part its documents, characters (with the
blank lines between documents), tokens, sha256 of the text, and left_out (the most frequent characters without
a token) with left_out_characters (of them all)."""


@dataclass(frozen=True)
class Corpus:
    """`to_split` is divided by `fractions`; `provided` are whole parts."""

    to_split: CorpusSource
    fractions: Fractions
    provided: Mapping[SplitName, CorpusSource]

    def documents(self) -> Iterator[tuple[SplitName, Document]]:
        whole = (
            (part, document) for part, source in self.provided.items() for document in source.documents()
        )
        return chain(split_documents(self.to_split, self.fractions), whole)

    @property
    def sources(self) -> tuple[CorpusSource, ...]:
        return (self.to_split, *self.provided.values())

    def fingerprint(self, recipe: str) -> str:
        """Equal as long as no file's size and time of change, no rule and no setting have changed."""
        files = [
            [(str(path.absolute()), path.stat().st_size, path.stat().st_mtime_ns) for path in source.files]
            for source in self.sources
        ]
        columns = [getattr(source, "column", None) for source in self.sources]
        return _cache_key(
            STORE_VERSION, recipe, files, columns, list(self.provided), list(self.fractions.items())
        )


def prepare_corpus(
    data: str | OpenedData,
    config: DataConfig,
    valid: str | None,
    test: str | None,
    log: Log,
    tokenizer: Tokenizer | None = None,
) -> PreparedCorpus:
    """Token arrays of DATA (a path, else a name of the catalogue), made once and then found in the cache.

    Where `valid` or `test` is given nothing at all is cut from DATA; the set that is not given is None.
    `tokenizer`: to be used, rather than one made from the training text.
    Errors: UserError names the file, and where it can the line, and how to mend it.
    """
    given = {part: path for part, path in (("valid", valid), ("test", test)) if path is not None}
    shares = {} if given else {"valid": config.valid_fraction, "test": config.test_fraction}
    opened = open_data(data, log)
    data = opened.name
    corpus = Corpus(
        to_split=open_text_source(opened.whole, config.text),
        fractions={part: share for part, share in shares.items() if share},
        provided={
            part: open_text_source(open_data(path, log).whole, config.text) for part, path in given.items()
        },
    )
    store, skipped = _load_or_build_store(corpus, config, tokenizer, log)
    for part in ("train", *corpus.fractions, *corpus.provided):
        if not store.facts.get(part, {}).get("tokens"):
            alike = " (equal rows stay in one part)" if isinstance(corpus.to_split, TextTable) else ""
            raise UserError(_empty_split_error(part, given.get(part, data), part in given, alike))
    _log_losses(skipped, store.facts, log)
    return PreparedData(
        processor=store.tokenizer,
        train=store.tokens["train"],
        valid=store.tokens.get("valid"),
        test=store.tokens.get("test"),
        facts={"source": data, "skipped": skipped, "parts": store.facts},
    )


def prepare_eval_corpus(
    data: str | OpenedData, column: str, tokenizer: Tokenizer, log: Log
) -> tuple[TokenArray, dict[str, Any]]:
    """Return the tokens of all of DATA, and its facts: those of `prepare_corpus` and of its only part."""
    opened = open_data(data, log)
    data = opened.name
    corpus = Corpus(to_split=open_text_source(opened.whole, column), fractions={}, provided={})
    store, skipped = _load_or_build_store(corpus, DataConfig(), tokenizer, log)
    facts = store.facts.get("train", {})
    if not facts.get("tokens"):
        raise UserError(f"{data}: holds no text, or none of its characters occur in the model's vocabulary")
    _log_losses(skipped, {data: facts}, log)
    return store.tokens["train"], {"source": data, "skipped": skipped, **facts}


def _load_or_build_store(
    corpus: Corpus, config: DataConfig, tokenizer: Tokenizer | None, log: Log
) -> tuple[TokenStore, list[str]]:
    """The corpus's store, found or built, and the reasons for files that were skipped.

    Files that look unchanged are not read again. Else the text is read once to know it (its hash, its
    vocabulary) and, if the cache has no store of that text, a second time to write its tokens.
    """
    recipe = tokenizer.digest if tokenizer else f"{config.tokenizer}-{config.vocab_size}"
    note = cache_folder() / "seen" / f"{corpus.fingerprint(recipe)}.json"
    seen = _read_cache_entry(note)
    if seen and (store := open_token_store(cache_folder() / "tokens" / seen["store"])):
        return store, seen["skipped"]

    reading = CorpusReader(corpus.documents(), "reading", log)
    training = (piece for part, piece in reading if part == "train")
    tokenizer = tokenizer or make_tokenizer(config.tokenizer, config.vocab_size, training)
    if tokenizer.size < 2:
        raise UserError(
            f"{corpus.to_split.path}: its training part has fewer than two different characters, "
            "so there is nothing to learn; give more text"
        )
    for _ in training:
        pass  # to the end, whatever the tokenizer has left unread
    facts = reading.facts()
    key = _cache_key(STORE_VERSION, tokenizer.digest, {part: fact["sha256"] for part, fact in facts.items()})
    folder = cache_folder() / "tokens" / key
    with file_lock(folder):
        store = open_token_store(folder)
        if store is None:
            shutil.rmtree(folder, ignore_errors=True)
            build_token_store(folder, CorpusReader(corpus.documents(), "tokenising", log), tokenizer, facts)
            store = open_token_store(folder)
    if store is None:
        raise RunFailed(f"{folder}: what was written can't be read back; check the disk")
    skipped = [why for source in corpus.sources if isinstance(source, TextFolder) for why in source.skipped]
    with file_lock(note):
        atomic_write(note, json.dumps({"store": key, "skipped": skipped}).encode())
    return store, skipped


def _read_cache_entry(path: Path) -> dict[str, Any] | None:
    try:
        note = json.loads(path.read_bytes())
        return note if {"store", "skipped"} <= set(note) else None
    except (OSError, ValueError, TypeError):
        return None


def _cache_key(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _empty_split_error(split: SplitName, data: str, provided: bool, hint: str) -> str:
    if split == "train":
        return (
            f"{data}: no text to train on{hint}; give more text, or keep less of it back "
            "(data.valid_fraction, data.test_fraction)"
        )
    if provided:
        return f"{data}: none of its characters occur in the training text; give text of the same kind"
    return (
        f"{data}: too little text to cut a {split} set from{hint}; give more, or set data.{split}_fraction=0"
    )


def _log_losses(skipped: list[str], facts: dict[str, dict[str, Any]], log: Log) -> None:
    if skipped:
        log(f"skipped {len(skipped)} file(s) that are not UTF-8 text, the first: {skipped[0]}")
    log_unknown_tokens(facts, log)
