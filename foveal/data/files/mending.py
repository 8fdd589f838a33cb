"""Commands that bring tables and texts beside media files into the form that is read: `metadata.csv`."""

from pathlib import Path

from foveal.data.files.data_part import DataPart, open_part
from foveal.data.files.tables import TABLE_SUFFIXES

MAX_LOOKED_AT = 20
"""Tables and folders of a folder that are looked at."""


def table_of_files_hint(whole: DataPart, suffixes: tuple[str, ...]) -> str:
    """Say that a table beside folders of media files names the files, and how to make `metadata.csv` of it.

    Empty if there is no such table. `suffixes` are those of media files.
    """
    if not whole.is_disk_folder or whole.table is not None:
        return ""
    tables = [name for name in whole.listing.files if Path(name).suffix.lower() in TABLE_SUFFIXES]
    for table in tables[:MAX_LOOKED_AT]:
        row = open_part(f"{whole}/{table}", encoding=whole.encoding).first_row
        for column, value in row.items():
            if isinstance(value, str) and value.lower().endswith(suffixes):
                for folder in whole.listing.folders[:MAX_LOOKED_AT]:
                    if (whole.path / folder / value).is_file():
                        return _rewrite_hint(whole, table, column, folder, [*row])
    return ""


def _rewrite_hint(whole: DataPart, table: str, column: str, folder: str, columns: list[str]) -> str:
    text = next((name for name in ("text", "sentence", "caption", "label", "class") if name in columns), "")
    target = "label" if text in ("label", "class") else "text"
    separator = "\\t" if table.lower().endswith(".tsv") else ","
    return (
        f"{table} names the files in {folder} (column {column}); write a table beside them, then train on "
        f"{whole}/{folder}: python3 -c \"import csv; rows = csv.DictReader(open('{whole}/{table}'), "
        f"delimiter='{separator}'); out = csv.writer(open('{whole}/{folder}/metadata.csv', 'w')); "
        f"out.writerow(['file_name', '{target}']); "
        f"out.writerows([row['{column}'], row['{text or 'COLUMN'}']] for row in rows)\""
    )


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
