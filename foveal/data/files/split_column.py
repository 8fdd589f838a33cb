"""Columns of a table that name the split of each row, such as `split` with train and test, or `is_test`."""

import json
import shlex
from collections.abc import Collection

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.data.core.hash_split import SplitName
from foveal.data.files.data_part import DAMAGED_ZIP_ERRORS, METADATA_FILES, DataPart
from foveal.data.files.split_names import is_split_like, is_unlabeled_name, list_names, split_of_name
from foveal.data.files.tables import read_records
from foveal.store.cache import cache_folder

SPLIT_COLUMNS = {"split", "splits", "fold", "folds", "subset", "set", "partition", "part", "usage"}
"""Names of columns that may be splits, in lower case."""
TRUE_SPLITS: dict[str, tuple[SplitName, SplitName]] = {
    "is_test": ("test", "train"),
    "is_train": ("train", "test"),
    "is_valid": ("valid", "train"),
    "is_val": ("valid", "train"),
}
"""Maps names of columns of truth values to the splits of true and of false."""
TRUTH = {"true": 0, "1": 0, "1.0": 0, "yes": 0, "false": 1, "0": 1, "0.0": 1, "no": 1}
MAX_VALUES = 50
"""Distinct values of a column of splits at most."""
SEPARATORS = {".csv": ",", ".tsv": "\t"}


def check_split_columns(part: DataPart, used: Collection[str], log: Log) -> None:
    """Check that no column names the split of each row of a table that is split by content. Log a column of
    folds, which is not used.

    `used` are the columns that are read.

    Raises: UserError: a column names splits. The message says how to write the splits as files or folders.
    """
    for column in part.columns:
        name = column.strip().lower().replace(" ", "_").replace("-", "_")
        if column in used or (name not in SPLIT_COLUMNS and name not in TRUE_SPLITS):
            continue
        values = _values(part, column)
        splits = _splits_by_value(name, values)
        if {"train"} < {*splits.values()}:
            raise UserError(
                f"{part}: the column '{column}' ({list_names(values)}) names the split of each row, and is "
                f"not read; write a {'folder' if part.is_folder else 'file'} for each split"
                f"{_command(part, column, splits)} (or rename the column, to hold rows out at random)"
            )
        if len(values) > 1 and all(value.removesuffix(".0").isdecimal() for value in values):
            log(
                f"{part}: the column '{column}' ({list_names(values)}) is not used as splits; "
                "give rows to hold out with --valid and --test"
            )


def _values(part: DataPart, column: str) -> list[str]:
    """Return the distinct values of a column, sorted. Empty if there are many, or a table can't be read."""
    values: set[str] = set()
    try:
        for table in part.files if part.is_table else [part.table]:
            records = read_records(table, [column], encoding=part.encoding) if table is not None else ()
            for _, fields in records:
                value = fields[column] if isinstance(fields, dict) else None
                if value is not None and value == value and str(value).strip():
                    values.add(str(value))
                if len(values) > MAX_VALUES:
                    return []
    except (UserError, *DAMAGED_ZIP_ERRORS):
        return []  # the reader of the data reports the error
    return sorted(values)


def _splits_by_value(name: str, values: list[str]) -> dict[str, SplitName]:
    """Map the values of the column `name` to splits. Empty if a value is not the name of a split."""
    if name in TRUE_SPLITS:
        places = {value: TRUTH.get(value.strip().lower()) for value in values}
        return {value: TRUE_SPLITS[name][place] for value, place in places.items() if place is not None}
    if not all(map(is_split_like, values)):
        return {}
    splits = {value: split_of_name(value) for value in values if not is_unlabeled_name(value)}
    return {value: split for value, split in splits.items() if split is not None}


def _command(part: DataPart, column: str, splits: dict[str, SplitName]) -> str:
    """Return the command that writes the splits. Empty for several files, Parquet, nested JSON and zips."""
    table = part.table
    suffix = "" if table is None else "." + table.name.rpartition(".")[2].lower()
    is_plain = suffix in (*SEPARATORS, ".jsonl") and not part.shards and (part.is_file or part.is_disk_folder)
    if not is_plain or part.path.is_relative_to(cache_folder()):
        return ", such as train and test"
    if part.is_folder:
        file, folder = METADATA_FILES[suffix == ".jsonl"], "."
        target = f'f"{{s}}/{file}"'
    else:
        file, folder = str(part.path), str(part.path.with_suffix(""))
        target = f'f"{{d}}/{{s}}{suffix}"'
    if suffix == ".jsonl":
        rows = 'r = [(x, json.loads(x)) for x in open(t, encoding="utf-8-sig") if x.strip()]; h = ""; '
        of_split = f"n.get(str(x[1].get({_quoted(column)})))"
        named, line = 'x[1]["file_name"]', 'x[0].rstrip("\\n") + "\\n"'
        write = f'open({target}, "w", encoding="utf-8").writelines({line} for x in r if {of_split} == s)'
    else:
        place, separator = part.columns.index(column), _separator(part, suffix)
        form = f"delimiter={_quoted(separator)}"
        rows = f'h, *r = csv.reader(open(t, newline="", encoding="utf-8-sig"), {form}); '
        rows += "r = [x for x in r if len(x) == len(h)]; "
        of_split = f"n.get(x[{place}])"
        named = f"x[{part.columns.index('file_name') if 'file_name' in part.columns else 0}]"
        opened = f'open({target}, "w", newline="", encoding="utf-8")'
        write = f"csv.writer({opened}, {form}).writerows([h] + [x for x in r if {of_split} == s])"
    moved = ""
    if part.is_folder:
        moved = f'[os.renames({named}, {of_split} + "/" + {named}) for x in r if {of_split} and '
        moved += f"os.path.exists({named})]; "
    program = (
        f"import csv, json, os; t, d, n = {_quoted(file)}, {_quoted(folder)}, {_quoted(splits)}; "
        f"{rows}{moved}"
        f"[os.makedirs({'s' if part.is_folder else 'd'}, exist_ok=True) for s in n.values()]; "
        f"[{write} for s in sorted({{*n.values()}})]"
    )
    command = f"python3 -c {shlex.quote(program)}"
    if part.is_folder:
        return f": cd {shlex.quote(str(part))} && {command} && rm {file}"
    return f": {command} && foveal train {shlex.quote(folder)}"


def _separator(part: DataPart, suffix: str) -> str:
    """Return the separator of the table of a file or folder on disk."""
    if suffix != ".csv":
        return SEPARATORS[suffix]
    path = part.path / METADATA_FILES[0] if part.is_folder else part.path
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        first = file.readline()
    return next((character for character in ",;\t|" if character in first), ",")


def _quoted(value: object) -> str:
    """Return a value as Python writes it, with double quotes."""
    return json.dumps(value, ensure_ascii=False)
