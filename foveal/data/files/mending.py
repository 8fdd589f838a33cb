"""Commands that bring tables and texts beside media files into the form that is read: `metadata.csv`."""

import os
import re
import shlex
from collections.abc import Sequence
from itertools import takewhile

from foveal.data.files.data_part import DataPart
from foveal.data.files.file_bytes import read_first_bytes
from foveal.data.files.tables import table_separator

NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|nan", re.I)
COMMENT_BYTES = 1 << 14
"""First bytes of a table in which comments are looked for."""
WORDS_OF_ROW = 4
"""Words of a text that is no name of a column."""
HEADED_SUFFIXES = (".csv", ".tsv")
"""The suffixes of tables whose first line names the columns."""


def backslash_hint(part: DataPart) -> str:
    """Say that most files have a backslash in their names, where folders are meant. Empty if they don't."""
    if not part.is_disk_folder or part.table is not None:
        return ""
    names = [name for name in part.first_files if "\\" in name]
    if 2 * len(names) <= len(part.first_files):
        return ""
    return (
        f"the names of files, such as {names[0]}, have backslashes in place of folders; give the zip itself, "
        "or unpack it with 7z x"
    )


def series_hint(parts: Sequence[DataPart]) -> str:
    """Say how to write files of series, a label and numbers on each line, in a form that is read."""
    names = _quoted(parts)
    return (
        "a label and the numbers of a series on each line, as in the UCR archive; write them as .jsonl and "
        f"train on the folder series: mkdir -p series; for f in {names}; do awk -F'[, \\t]+' "
        '\'{sub(/^ +/, ""); '
        'printf "{\\"label\\": \\"%s\\", \\"values\\": [", $1; for (i = 2; i <= NF; i++) printf "%s[%s]", '
        '(i > 2 ? ", " : ""), $i; print "]}"}\' "$f" > "series/$(basename "${f%.*}").jsonl"; done'
    )


def _quoted(parts: Sequence[DataPart]) -> str:
    """Return the files of the splits as arguments of a command."""
    return " ".join(shlex.quote(str(file)) for part in parts for file in part.files)


def comment_lines_hint(table: DataPart) -> str:
    """Say that comments stand above the header of a table. Empty if there are none."""
    lines = read_first_bytes(table.path, COMMENT_BYTES).decode("utf-8-sig", "replace").splitlines()
    comments = [*takewhile(lambda line: line.startswith("#"), lines)]
    after = lines[len(comments)] if len(comments) < len(lines) else ""
    separators = max(",;\t|", key=after.count)
    if not comments or all(line.count(separators) == after.count(separators) for line in comments):
        return ""
    which = "line 1 is a comment" if len(comments) == 1 else f"lines 1-{len(comments)} are comments"
    return f"{which}; remove them: sed -i '1,{len(comments)}d' {_quoted([table])}"


def no_header_hint(parts: Sequence[DataPart], text: str, label: str, value: str) -> str:
    """Say that the first line of a table looks like a row, and how to write the table with names above it.

    `text` and `label` are the columns that look so, and `value` is a column whose name is also a value below;
    each may be empty. Empty if the first line may be names of columns.
    """
    columns = parts[0].columns
    numbered = [*columns] == [*map(str, range(len(columns)))]  # by pandas, which names columns so
    if parts[0].suffix not in HEADED_SUFFIXES or numbered or not (value or _is_row(columns)):
        return ""
    text = text or max(columns, key=len)
    label = label or next((name for name in columns if name != text), "")
    names = {text: "text", label: "label"}
    separator = table_separator(parts[0].files[0], parts[0].encoding)
    header = separator.join(names.get(column, f"column{place}") for place, column in enumerate(columns, 1))
    header = header.replace("\t", "\\t")
    reason = f", since '{value}' is also a value below" if value else ", not like the names of the columns"
    files = [str(file) for part in parts for file in part.files]
    folder = os.path.commonpath([os.path.dirname(file) or "." for file in files])
    names_inside = " ".join(shlex.quote(os.path.relpath(file, folder)) for file in files)
    return (
        f"the first line looks like a row{reason}; write the names above, and train on "
        f"{os.path.join(folder, 'named')}: (cd {shlex.quote(folder)} && for f in {names_inside}; do mkdir -p "
        f'"named/$(dirname "$f")"; {{ printf \'{header}\\n\'; cat "$f"; }} > "named/$f"; done)'
    )


def _is_row(columns: Sequence[str]) -> bool:
    """Return whether most names of columns look like data, and one is a number."""
    numbers = [NUMBER.fullmatch(name) is not None for name in columns]
    texts = [len(name.split()) >= WORDS_OF_ROW for name in columns]
    return any(numbers) and 2 * (sum(numbers) + sum(texts)) > len(columns)


def header_hint(columns: tuple[str, ...]) -> str:
    """Say how to mend the header of a metadata table without a column of file names. Empty if unknown."""
    similar = [name for name in columns if name.lower().replace("_", "") in ("filename", "file", "path")]
    if similar:
        return f"rename the column '{similar[0]}' to file_name"
    if any("|" in name for name in columns) or (len(columns) > 1 and columns[0].startswith("LJ")):
        return (
            "if it has no header, as LJSpeech's: awk -F'|' 'BEGIN {print \"file_name|text\"} "
            '{print "wavs/" $1 ".wav|" $NF}\' metadata.csv > new.csv && mv new.csv metadata.csv'
        )
    return ""
