"""Token arrays of DATA: documents are read, split and tokenized once, then cached."""

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
from foveal.data.files.data_part import DataPart
from foveal.data.files.split_column import check_split_columns
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
from foveal.data.text.unknown_tokens import check_known_facts, log_unknown_tokens
from foveal.store.cache import cache_folder, file_lock
from foveal.store.durable import atomic_write
from foveal.store.regular_files import read_regular
from foveal.store.sealed import open_json, seal_json

STORE_VERSION = 1
"""Changes with the rules of splitting, joining and storing, so that older stores are not used."""


PreparedCorpus = PreparedData[Tokenizer, TokenArray]
"""A prepared corpus.

Its facts are `skipped` (the reason for each skipped file) and for each split the numbers of documents,
characters (with the blank lines between documents) and tokens, the sha256 of the text, `left_out` (the most
frequent characters without a token) and `left_out_characters` (the number of all such characters).
"""


@dataclass(frozen=True)
class Corpus:
    """Text to train on. `to_split` is split by `fractions`; `provided` are complete splits."""

    to_split: CorpusSource
    fractions: Fractions
    provided: Mapping[SplitName, CorpusSource]

    def documents(self) -> Iterator[tuple[SplitName, Document]]:
        """Yield each document with its split."""
        provided = (
            (split, document) for split, source in self.provided.items() for document in source.documents()
        )
        return chain(split_documents(self.to_split, self.fractions), provided)

    @property
    def sources(self) -> tuple[CorpusSource, ...]:
        return (self.to_split, *self.provided.values())

    def fingerprint(self, recipe: str) -> str:
        """Return a hash of the files' sizes and modification times, of the rules and of the settings."""
        files = [
            [(str(path.absolute()), path.stat().st_size, path.stat().st_mtime_ns) for path in source.files]
            for source in self.sources
        ]
        columns = [
            f"{source.column}{source.part.encoding}" if isinstance(source, TextTable) else None
            for source in self.sources
        ]
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
    """Return the token arrays of DATA, a path or a data set of the catalog. Cached arrays are reused.

    If `valid` or `test` is given, no part of DATA is held out, and a split that is not given is None.
    `tokenizer` is used instead of a new tokenizer fitted to the training text.

    Raises: UserError: a file can't be read, a split has no text, or a column of DATA names the splits.
    """
    corpus, parts = open_corpus(data, config, valid, test, log)
    paths = {split: path for split, path in (("valid", valid), ("test", test)) if path is not None}
    data = data if isinstance(data, str) else data.name
    store, skipped = _load_or_build_store(corpus, config, tokenizer, log)
    for split in ("train", *corpus.fractions, *corpus.provided):
        if not store.facts.get(split, {}).get("tokens"):
            hint = " (equal rows stay in one split)" if isinstance(corpus.to_split, TextTable) else ""
            part = data if split not in parts or split == "train" else paths.get(split, str(parts[split]))
            provided, held_out = split in corpus.provided, bool(corpus.fractions)
            raise UserError(_empty_split_error(split, part, provided, held_out, hint))
    for split in corpus.provided:
        check_known_facts(paths.get(split, str(parts[split])), store.facts[split])
    _log_same_text(store.facts, log)
    _log_losses(skipped, store.facts, log)
    return PreparedData(
        processor=store.tokenizer,
        train=store.tokens["train"],
        valid=store.tokens.get("valid"),
        test=store.tokens.get("test"),
        facts={"source": data, "skipped": skipped, "parts": store.facts},
    )


def open_corpus(
    data: str | OpenedData, config: DataConfig, valid: str | None, test: str | None, log: Log
) -> tuple[Corpus, dict[SplitName, DataPart]]:
    """Return the text of DATA with its splits, and the file or folder of each split.

    If `valid` or `test` is given, no part of DATA is held out.

    Raises: UserError: a file can't be read, or a column of DATA names the splits.
    """
    opened = open_data(data, log, config.encoding)
    paths = {"valid": valid, "test": test}
    parts = opened.splits | {
        split: open_data(path, log, config.encoding).split(split)
        for split, path in paths.items()
        if path is not None
    }
    if len(parts) == 1:
        check_split_columns(parts["train"], (config.text,), log)
    fractions = {} if len(parts) > 1 else {"valid": config.valid_fraction, "test": config.test_fraction}
    corpus = Corpus(
        to_split=open_text_source(parts["train"], config.text),
        fractions={split: fraction for split, fraction in fractions.items() if fraction},
        provided={
            split: open_text_source(part, config.text) for split, part in parts.items() if split != "train"
        },
    )
    return corpus, parts


def prepare_eval_corpus(
    data: str | OpenedData, config: DataConfig, tokenizer: Tokenizer, log: Log
) -> tuple[TokenArray, dict[str, Any]]:
    """Return the tokens of all of DATA, or of its test split if DATA has splits, and the facts of
    `prepare_corpus` for it.

    Raises: UserError: DATA has no text, or none of its characters are in the vocabulary.
    """
    opened = open_data(data, log, config.encoding)
    data = opened.name
    corpus = Corpus(to_split=open_text_source(opened.split("test"), config.text), fractions={}, provided={})
    store, skipped = _load_or_build_store(corpus, DataConfig(), tokenizer, log)
    facts = store.facts.get("train", {})
    if not facts.get("tokens"):
        raise UserError(f"{data}: holds no text, or none of its characters occur in the model's vocabulary")
    check_known_facts(data, facts)
    _log_losses(skipped, {data: facts}, log)
    return store.tokens["train"], {"source": data, "skipped": skipped, **facts}


def _load_or_build_store(
    corpus: Corpus, config: DataConfig, tokenizer: Tokenizer | None, log: Log
) -> tuple[TokenStore, list[str]]:
    """Return the corpus's store from the cache, or build it. Return also the reasons for skipped files.

    Files whose sizes and times are unchanged are not read again. Otherwise the text is read once for its hash
    and its vocabulary. If the cache has no store of that text, it is read again to write its tokens.
    """
    recipe = tokenizer.digest if tokenizer else f"{config.tokenizer}-{config.vocab_size}"
    entry_path = cache_folder() / "seen" / f"{corpus.fingerprint(recipe)}.json"
    entry = _read_cache_entry(entry_path)
    if entry and (store := open_token_store(cache_folder() / "tokens" / entry["store"])):
        return store, entry["skipped"]

    reader = CorpusReader(corpus.documents(), "reading", log)
    training = (text for split, text in reader if split == "train")
    tokenizer = tokenizer or make_tokenizer(config.tokenizer, config.vocab_size, training)
    if tokenizer.size < 2:
        raise UserError(
            f"{corpus.to_split.path}: the training split has fewer than two different characters, "
            "so there is nothing to learn; give more text"
        )
    for _ in training:
        pass  # read the rest, which the tokenizer may have left unread
    facts = reader.facts()
    key = _cache_key(
        STORE_VERSION, tokenizer.digest, {split: fact["sha256"] for split, fact in facts.items()}
    )
    folder = cache_folder() / "tokens" / key
    with file_lock(folder):
        store = open_token_store(folder)
        if store is None:
            shutil.rmtree(folder, ignore_errors=True)
            build_token_store(folder, CorpusReader(corpus.documents(), "tokenizing", log), tokenizer, facts)
            store = open_token_store(folder)
    if store is None:
        raise RunFailed(f"{folder}: the tokens just written can't be read back; check the disk")
    skipped = [
        reason for source in corpus.sources if isinstance(source, TextFolder) for reason in source.skipped
    ]
    with file_lock(entry_path):
        atomic_write(entry_path, seal_json({"store": key, "skipped": skipped}))
    return store, skipped


def _read_cache_entry(path: Path) -> dict[str, Any] | None:
    try:
        entry = open_json(read_regular(path), str(path))
        return entry if entry.keys() == {"store", "skipped"} else None
    except UserError:
        return None


def _cache_key(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _empty_split_error(split: SplitName, data: str, provided: bool, held_out: bool, hint: str) -> str:
    if split == "train":
        less = ", or hold less of it out (data.valid_fraction, data.test_fraction)" if held_out else ""
        return f"{data}: no text to train on{hint}; give more text{less}"
    if provided:
        return f"{data}: none of its characters occur in the training text; give text of the same kind"
    return f"{data}: too little text for a {split} set{hint}; give more text, or set data.{split}_fraction=0"


def _log_same_text(facts: dict[str, dict[str, Any]], log: Log) -> None:
    """Log the held-out splits whose text is that of the training split, which makes the loss too low."""
    for split in ("valid", "test"):
        if split in facts and facts[split]["sha256"] == facts["train"]["sha256"]:
            log(f"{split}: the same text as the training split, so its loss says nothing about new text")


def _log_losses(skipped: list[str], facts: dict[str, dict[str, Any]], log: Log) -> None:
    if skipped:
        log(f"skipped {len(skipped)} file(s) that are not UTF-8 text, the first: {skipped[0]}")
    log_unknown_tokens(facts, log)
