"""Whether files look like running text, such as prose and source code, or like data of another kind."""

import re
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from foveal.core.parse_json import parse_json
from foveal.data.files.data_part import DataPart
from foveal.data.files.file_bytes import read_first_bytes
from foveal.data.files.split_names import is_document, list_names, split_of_name
from foveal.data.files.tables import TABLE_SUFFIXES
from foveal.data.files.unread_formats import missing_suffix, pickle_hint, unread_format_hint
from foveal.data.files.utf8 import AnyPath

HEAD_BYTES = 1 << 16
"""First bytes of a file that are looked at."""
MAX_FILES = 10
"""Files of a folder that are looked at."""
SPLIT_SUFFIXES = {".train", ".testa", ".testb", ".test", ".dev", ".valid", ".val"}
"""Suffixes that are splits, such as that of `eng.train`."""
DATA_SUFFIXES = {"", ".txt", ".text", ".dat", ".data", ".tab", ".list", ".lst", ".out", *SPLIT_SUFFIXES}
"""Suffixes of files that may hold anything. Other files of text are source code, markup or prose."""
MIN_LINES = 3
"""Lines from which a pattern is recognized."""
MOST = 0.95
"""Fraction of lines that must follow a pattern."""
SHORT_LINE = 24
"""Characters of a short line."""
FILE_NAME = re.compile(
    r"\S+\.(jpe?g|png|gif|bmp|webp|tiff?|wav|flac|ogg|mp3|mp4|avi|txt|xml|json|npy)(\s+\S+)?", re.I
)
NUMBERS = re.compile(r"([-+0-9.eE,;:\s]|nan|inf)*")
FIELD = re.compile(r"[^\s,;]+")
MIN_SERIES = 6
"""Numbers of each line that may be a label and a series."""
FASTTEXT_LABEL = re.compile(r"__label__\S+\s")
SEPARATORS = {"\t": "tabs", ";": "semicolons", "|": "bars"}
MAX_CLASSES, ROWS_PER_CLASS = 20, 3
"""Distinct values of a last field that looks like a label at most, and rows for each of them at least."""
LANGUAGE_SUFFIX = re.compile(r"\.[a-z]{2,3}")


class TextLook(NamedTuple):
    """What text looks like."""

    doubt: str
    """What it is rather than running text, and how to mend that. Empty for running text."""
    reason: str = "it reads as running text"


def look_at_text(part: DataPart) -> TextLook:
    """Return what a file or folder that is of no other kind looks like."""
    if part.is_disk_folder:
        return TextLook(_folder_doubt(part))
    if not part.is_file:
        return TextLook("")
    doubt = unread_format_hint(part.path.name) or pickle_hint(part.path) or _file_doubt(part.path)
    lines = _lines(part.path)
    if (
        not doubt
        and len(lines) >= MIN_LINES
        and _most(lines, lambda line: len(line) <= SHORT_LINE and " " not in line)
    ):
        return TextLook("", "it is text with one word a line, all learned as one text")
    return TextLook(doubt)


def holds_series(part: DataPart) -> bool:
    """Return whether the lines of a file are many numbers each, without a header."""
    if not part.is_file or part.suffix not in {".csv", ".tsv", *DATA_SUFFIXES}:
        return False
    lines = _lines(part.path)
    fewest = min((len(FIELD.findall(line)) for line in lines), default=0)
    return len(lines) >= MIN_LINES and fewest >= MIN_SERIES and all(map(NUMBERS.fullmatch, lines))


def _file_doubt(path: AnyPath) -> str:
    """Return what a file is rather than running text; empty for text and for files that are not text."""
    if suffix := missing_suffix(path):
        return f"a picture or recording without a suffix; rename it to {path.name}{suffix}"
    if path.suffix.lower() not in DATA_SUFFIXES:
        return ""
    lines = _lines(path)
    if not lines:
        return ""
    if lines[0][0] in "{[" and _is_json(lines):
        return "JSON; rename the file to .json, or to .jsonl if each line is an object"
    if len(lines) < MIN_LINES:
        return ""
    if _most(lines, lambda line: FILE_NAME.fullmatch(line) is not None):
        return "a list of files; give their folder, with metadata.csv (columns file_name and label or text)"
    if _most(lines, lambda line: FASTTEXT_LABEL.match(line) is not None):
        return (
            "labels and texts in the format of fastText; make a table: sed -E "
            f"'s/^__label__([^ ]+) +/\\1\\t/; 1i label\\ttext' {shlex.quote(path.name)} > "
            + shlex.quote(f"{path.stem}.tsv")
        )
    if _most(lines, lambda line: NUMBERS.fullmatch(line) is not None):
        return "numbers; save series as .jsonl (values and label, one series a line) or .npz (docs/series.md)"
    if _are_tagged_words(path):
        stem = path.name if path.suffix.lower() in SPLIT_SUFFIXES else path.stem
        return f"words with tags, and blank lines between sentences; rename the file to {stem}.conll"
    for separator, name in SEPARATORS.items():
        if _is_table(lines, separator):
            kind = ".tsv" if separator == "\t" else ".csv"
            return (
                f"a table separated by {name}; rename it to {path.stem}{kind}, with the names of the columns "
                "in the first line, such as text and label"
            )
    return ""


def _folder_doubt(part: DataPart) -> str:
    listing = part.listing
    names = [name for name in part.first_files if not is_document(name)]
    if not names:
        return ""
    suffixes = Counter(Path(name).suffix.lower() for name in names)
    suffix, count = suffixes.most_common(1)[0]
    if 2 * count > len(names):
        first = next(name for name in names if Path(name).suffix.lower() == suffix)
        if hint := unread_format_hint(first):
            return hint
        if hint := pickle_hint(listing.file(first)):
            return f"files such as {first}: {hint}"
        if missing := "" if suffix else missing_suffix(listing.file(first)):
            return f"pictures or recordings without a suffix, such as {first}; rename them to NAME{missing}"
    if pairs := _language_pairs(listing.files):
        source, target = pairs
        return (
            f"texts in two languages; name the pair: {part}/{source},{part}/{target} (and others with "
            "--valid, --test)"
        )
    tables = [name for name in names if Path(name).suffix.lower() in TABLE_SUFFIXES]
    if 2 * len(tables) > len(names):
        if all(split_of_name(Path(name).stem) for name in tables):
            return f"{list_names(tables)}, and no file to train on; name the file: {part}/{tables[0]}"
        return f"several tables ({list_names(tables)}) with different columns; name one: {part}/{tables[0]}"
    texts = [name for name in names if not unread_format_hint(name)][:MAX_FILES]
    doubts = [doubt for name in texts if (doubt := _file_doubt(listing.file(name)))]
    return f"files such as {texts[0]}: {doubts[0]}" if 2 * len(doubts) > len(texts) else ""


def _language_pairs(names: Sequence[str]) -> tuple[str, str] | None:
    """Return two files of the training split that differ in a suffix that looks like a language."""
    train = [name for name in names if split_of_name(Path(name).stem) == "train"]
    languages = [name for name in train if LANGUAGE_SUFFIX.fullmatch(Path(name).suffix)]
    is_pair = len(train) == len(languages) == 2 and Path(train[0]).stem == Path(train[1]).stem
    return (train[0], train[1]) if is_pair else None


def _are_tagged_words(path: AnyPath) -> bool:
    """Return whether all lines have equally many words, the last of few, with blank lines between them."""
    text = read_first_bytes(path, HEAD_BYTES).decode("utf-8", "replace").replace("\r", "")
    rows = [line.split() for line in text.splitlines()[:-1] if line.strip()]
    tags = {row[-1] for row in rows}
    return "\n\n" in text and {len(row) for row in rows} in ({2}, {3}, {4}) and 10 * len(tags) < 3 * len(rows)


def _lines(path: AnyPath) -> list[str]:
    """Return the first lines that are not blank, without the last, which may be cut. None if not UTF-8."""
    head = read_first_bytes(path, HEAD_BYTES)
    text = head.decode("utf-8-sig", "replace")
    lines = text.splitlines()
    if len(head) == HEAD_BYTES and len(lines) > 1:
        lines.pop()
    return [] if "\0" in text or "\ufffd" in text[:-4] else [line for line in lines if line.strip()]


def _most(lines: Sequence[str], follows: Callable[[str], bool]) -> bool:
    return sum(map(follows, lines)) >= MOST * len(lines)


def _is_json(lines: Sequence[str]) -> bool:
    """Return whether the first line is JSON, or the first lines open JSON that later lines close."""
    try:
        parse_json(lines[0])
    except ValueError:
        return (
            re.match(r'\s*(\[\s*)*(\{\s*("|$)|\[$|\[\s*\{)', lines[0]) is not None
            and lines[-1].strip()[-1:] in "}],"
        )
    return True


def _is_table(lines: Sequence[str], separator: str) -> bool:
    """Return whether nearly all lines have the same number of separators, but none at their start.

    Two fields are a table only if one of them looks like a label, since prose has such characters too.
    """
    counts = Counter(line.count(separator) for line in lines)
    count, rows = counts.most_common(1)[0]
    if not count or rows < MOST * len(lines) or any(line.startswith(separator) for line in lines):
        return False
    if separator == "\t" and count > 1:
        return True
    columns = zip(*(line.split(separator) for line in lines if line.count(separator) == count), strict=True)
    kinds = [len({*column}) for column in columns]
    return any(1 < kind <= MAX_CLASSES and kind * ROWS_PER_CLASS <= rows for kind in kinds)
