"""Sentences with a tag for each word: CoNLL-U, plain CoNLL, and tables of lists.

CoNLL-U (universaldependencies.org/format.html): ten columns between tabs; lines of several words (`3-4`) and
of none (`3.1`) are left out. Plain CoNLL (Tjong Kim Sang and De Meulder 2003): columns between spaces or
tabs, the word first and its tag last. In both a blank line ends a sentence.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from foveal.config import suggest
from foveal.core.errors import UserError
from foveal.data.core.fields import Record, as_words
from foveal.data.core.rows import Row, SkippedRow, validate_rows
from foveal.data.files.lines import Line, LineReader
from foveal.data.files.tables import TABLE_SUFFIXES, read_records
from foveal.data.files.utf8 import open_file

CONLL_SUFFIXES = (".conllu", ".conll")
CONLLU_COLUMNS = {"lemma": 2, "upos": 3, "xpos": 4, "feats": 5, "deprel": 7}
"""Which columns of CoNLL-U they are."""
NOT_A_WORD = re.compile(r"\d+-\d+|\d+\.\d+")
COLUMN_SEPARATOR = re.compile(r"[ \t]+")
Columns = list[str]
LineParser = Callable[[str, Sequence[Columns]], Columns | str]
"""The columns of a line's word, none if the line has no word, or why it is broken; from the line and the
sentence's words before it."""


def read_tagged(path: Path, tags: str | None = "upos") -> Iterator[Row | SkippedRow]:
    """Sentences as fields "tokens" and "tags": lists of texts, as many as one another.

    `tags` is a column of CoNLL-U (CONLLU_COLUMNS). In tables the columns are `tokens` and the one that `tags`
    names, or `tags` if it names one of CoNLL-U: lists, or texts of words with spaces between. Without, tags
    are not looked at, and need not be there.
    Errors: UserError as in `read_rows`.
    """
    suffix = path.suffix.lower()
    if suffix == ".conllu":
        if tags is not None and tags not in CONLLU_COLUMNS:
            raise UserError(
                f"{path}: no tags '{tags}' in CoNLL-U{suggest(tags, CONLLU_COLUMNS)} (set data.tags=NAME)"
            )
        tag = None if tags is None else CONLLU_COLUMNS[tags]
        records = _sentences(path, partial(_parse_conllu, tag), 1, tag)
    elif suffix == ".conll":
        tag = None if tags is None else -1
        records = _sentences(path, partial(_parse_conll, tag), 0, tag)
    elif suffix in TABLE_SUFFIXES:
        mend = "words are in 'tokens', their tags in 'tags', or where data.tags=NAME says"
        column = [] if tags is None else ["tags" if tags in CONLLU_COLUMNS else tags]
        records = read_records(path, ["tokens", *column], mend)
    else:
        raise UserError(f"{path}: no tagged sentences (.conllu, .conll, {', '.join(TABLE_SUFFIXES)})")
    yield from validate_rows(str(path), records, as_words)


def _sentences(path: Path, split: LineParser, word: int, tag: int | None) -> Iterator[Record]:
    """Sentences whose words and tags, if these are wanted, stand in the columns `word` and `tag`."""
    for block in _blocks(path):
        words: list[Columns] = []
        for number, text, why in block:
            columns = why or split(text, words)
            if isinstance(columns, str):
                yield f"line {number}", columns
                break
            if columns:
                words.append(columns)
        else:
            if words:
                lists = {"tokens": [columns[word] for columns in words]}
                if tag is not None:
                    lists["tags"] = [columns[tag] for columns in words]
                yield f"line {block[0].number}", lists


def _blocks(path: Path) -> Iterator[list[Line]]:
    """The lines between blank ones."""
    with open_file(path) as file:
        block: list[Line] = []
        for line in LineReader(file.readline):
            if line.reason or line.text.strip():
                block.append(line)
            elif block:
                yield block
                block = []
        if block:
            yield block


def _parse_conllu(tag: int | None, text: str, words: Sequence[Columns]) -> Columns | str:
    """A line of CoNLL-U."""
    columns = text.rstrip("\r\n").split("\t")
    if text.startswith("#"):
        return []
    if len(columns) != 10:
        return f"{len(columns)} columns where CoNLL-U has 10 with tabs between; mend the line"
    if NOT_A_WORD.fullmatch(columns[0]):
        return []
    following = str(len(words) + 1)
    if columns[0] != following:
        return f"word number '{columns[0]}' where {following} is next; mend it (a blank line ends a sentence)"
    if tag is not None and columns[tag] == "_" and tag != CONLLU_COLUMNS["feats"]:
        return f"'{columns[1]}' has no tag ('_' in column {tag + 1}); fill it in"
    return columns


def _parse_conll(tag: int | None, text: str, words: Sequence[Columns]) -> Columns | str:
    """A line of plain CoNLL. Before a sentence's first word, `# ` and several words are a comment."""
    columns = COLUMN_SEPARATOR.split(text.strip(" \t\r\n"))
    if columns[0] == "-DOCSTART-" or (not words and text.startswith("# ") and len(columns) > 2):
        return []
    if len(columns) < 2 and tag is not None:
        return "one column where a word and its tag are needed; mend the line"
    if words and len(columns) != len(words[0]):
        return f"{len(columns)} columns where the sentence's first word has {len(words[0])}; mend the line"
    return columns
