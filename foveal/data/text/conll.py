"""Sentences with a tag for each word: CoNLL-U, plain CoNLL, and tables of lists.

CoNLL-U (universaldependencies.org/format.html) has ten columns separated by tabs. Lines for multiword tokens
(`3-4`) and for empty nodes (`3.1`) are left out. Plain CoNLL (Tjong Kim Sang and De Meulder 2003) has columns
separated by spaces or tabs: the word is first and its tag is last. In both, a blank line ends a sentence.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from foveal.config import suggest
from foveal.core.errors import UserError
from foveal.data.core.fields import Record, as_words
from foveal.data.core.rows import Row, SkippedRow, validate_rows
from foveal.data.files.data_part import DataPart
from foveal.data.files.lines import Line, LineReader
from foveal.data.files.tables import TABLE_SUFFIXES, read_records
from foveal.data.files.utf8 import open_lines

CONLL_SUFFIXES = (".conllu", ".conll")
CONLLU_COLUMNS = {"lemma": 2, "upos": 3, "xpos": 4, "feats": 5, "deprel": 7}
"""Indices of the columns of CoNLL-U by name."""
NOT_A_WORD = re.compile(r"\d+-\d+|\d+\.\d+")
COLUMN_SEPARATOR = re.compile(r"[ \t]+")
Columns = list[str]
LineParser = Callable[[str, Sequence[Columns]], Columns | str]
"""A function from a line, and the words of the sentence before it, to the columns of the line's word.

The columns are empty if the line has no word. A string is the reason why the line can't be used.
"""


def read_tagged_part(part: DataPart, tags: str | None) -> Iterator[Row | SkippedRow]:
    """Read the sentences of all files of a part, as `read_tagged` does."""
    for file in part.files:
        yield from read_tagged(file, tags, part.encoding)


def read_tagged(path: Path, tags: str | None = "upos", encoding: str = "") -> Iterator[Row | SkippedRow]:
    """Read sentences as fields "tokens" and "tags": lists of texts of equal length.

    `tags` is a column of CoNLL-U (CONLLU_COLUMNS). Tables have a column `tokens`, and a column named by
    `tags` (named "tags" if `tags` is a column of CoNLL-U), with lists, or texts of words separated by spaces.
    If `tags` is None, tags are ignored and need not exist.

    Raises: UserError: the file is missing, damaged or of another format, or has no sentence that can be used.
    """
    suffix = path.suffix.lower()
    if suffix == ".conllu":
        if tags is not None and tags not in CONLLU_COLUMNS:
            raise UserError(
                f"{path}: no tags '{tags}' in CoNLL-U{suggest(tags, CONLLU_COLUMNS)} "
                "(train with data.tags=NAME)"
            )
        tag = None if tags is None else CONLLU_COLUMNS[tags]
        records = _sentences(path, partial(_parse_conllu, tag), 1, tag, encoding)
    elif suffix == ".conll":
        tag = None if tags is None else -1
        records = _sentences(path, partial(_parse_conll, tag), 0, tag, encoding)
    elif suffix in TABLE_SUFFIXES:
        hint = "words are in 'tokens', their tags in 'tags' or the column named by data.tags=NAME"
        column = [] if tags is None else ["tags" if tags in CONLLU_COLUMNS else tags]
        records = read_records(path, ["tokens", *column], hint, encoding=encoding)
    else:
        raise UserError(
            f"{path}: not a file of tagged sentences (.conllu, .conll, {', '.join(TABLE_SUFFIXES)})"
        )
    yield from validate_rows(str(path), records, as_words)


def _sentences(path: Path, split: LineParser, word: int, tag: int | None, encoding: str) -> Iterator[Record]:
    """Yield sentences. `word` and `tag` are the indices of the columns; without `tag`, tags are not read."""
    for block in _blocks(path, encoding):
        words: list[Columns] = []
        for number, text, reason in block:
            columns = reason or split(text, words)
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


def _blocks(path: Path, encoding: str) -> Iterator[list[Line]]:
    """Yield blocks of lines between blank lines."""
    with open_lines(path) as file:
        block: list[Line] = []
        for line in LineReader(file.readline, encoding=encoding):
            if line.reason or line.text.strip():
                block.append(line)
            elif block:
                yield block
                block = []
        if block:
            yield block


def _parse_conllu(tag: int | None, text: str, words: Sequence[Columns]) -> Columns | str:
    """Parse a line of CoNLL-U."""
    columns = text.rstrip("\r\n").split("\t")
    if text.startswith("#"):
        return []
    if len(columns) != 10:
        return f"{len(columns)} columns where CoNLL-U has 10 with tabs between; fix the line"
    if NOT_A_WORD.fullmatch(columns[0]):
        return []
    expected = str(len(words) + 1)
    if columns[0] != expected:
        return f"word number '{columns[0]}' where {expected} is next; fix it (a blank line ends a sentence)"
    if tag is not None and columns[tag] == "_" and tag != CONLLU_COLUMNS["feats"]:
        return f"'{columns[1]}' has no tag ('_' in column {tag + 1}); fill it in"
    return columns


def _parse_conll(tag: int | None, text: str, words: Sequence[Columns]) -> Columns | str:
    """Parse a line of plain CoNLL. Before a sentence's first word, `# ` and several words are a comment."""
    columns = COLUMN_SEPARATOR.split(text.strip(" \t\r\n"))
    if columns[0] == "-DOCSTART-" or (not words and text.startswith("# ") and len(columns) > 2):
        return []
    if len(columns) < 2 and tag is not None:
        return "one column where a word and its tag are needed; fix the line"
    if words and len(columns) != len(words[0]):
        return f"{len(columns)} columns where the sentence's first word has {len(words[0])}; fix the line"
    return columns
