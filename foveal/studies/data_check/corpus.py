"""The lines of running text, as rows."""

from collections.abc import Callable, Iterator

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.data.core.hash_split import SPLITS
from foveal.data.core.row_table import RowSink
from foveal.data.core.rows import Row, text_key
from foveal.data.open import DataPaths
from foveal.data.pairs.nothing import NoTarget
from foveal.data.pairs.pair import PairFormat
from foveal.data.prepare_corpus import open_corpus
from foveal.data.text.corpus import Document
from foveal.data.text.text_source import TextSource
from foveal.studies.data_check.checked_data import CheckedData

MIN_CHARACTERS = 40
"""Shorter lines, such as names of speakers, may well occur several times."""


def read_lines(
    paths: DataPaths, config: DataConfig, new_sink: Callable[[], RowSink], log: Log
) -> CheckedData:
    """Return the lines of running text. Those that are short are equal to no other.

    Raises: UserError: a file can't be read.
    """
    corpus, parts = open_corpus(paths.data, config, paths.valid, paths.test, log)
    sinks = {split: new_sink() for split in SPLITS}
    for split, document in corpus.documents():
        for number, line in _numbered_lines(document):
            key = text_key(line) if len(line) >= MIN_CHARACTERS else ""
            sinks[split].append(Row(f"{document.name}, line {number}", {"source": line}, key))
    tables = {split: sink.table() for split, sink in sinks.items()}
    name = paths.data if isinstance(paths.data, str) else paths.data.name
    if not len(tables["train"]):
        raise UserError(f"{name}: no text to train on; give more text")
    return CheckedData(name, parts, tables, [], config, PairFormat(TextSource(), NoTarget()))


def _numbered_lines(document: Document) -> Iterator[tuple[int, str]]:
    """Yield the lines that have text, with their numbers from 1 on."""
    number, rest = 0, ""
    for piece in document.pieces:
        *lines, rest = (rest + piece).split("\n")
        for line in lines:
            number += 1
            if line.strip():
                yield number, line.strip()
    if rest.strip():
        yield number + 1, rest.strip()
