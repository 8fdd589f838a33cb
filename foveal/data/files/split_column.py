"""Columns of a table that name the split of each row, such as `split` with train and test, or `is_test`."""

from collections.abc import Collection

from foveal.config.values import TRUTH_VALUES
from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.data.core.hash_split import SplitName
from foveal.data.files.data_part import DAMAGED_ZIP_ERRORS, DataPart
from foveal.data.files.split_names import is_split_like, is_unlabeled_name, list_names, split_of_name
from foveal.data.files.tables import read_records

SPLIT_COLUMNS = {"split", "splits", "fold", "folds", "subset", "set", "partition", "part", "usage"}
"""Names of columns that may be splits, in lower case."""
TRUE_SPLITS: dict[str, tuple[SplitName, SplitName]] = {
    "is_test": ("test", "train"),
    "is_train": ("train", "test"),
    "is_valid": ("valid", "train"),
    "is_val": ("valid", "train"),
}
"""Maps names of columns of truth values to the splits of true and of false."""
MAX_VALUES = 50
"""Distinct values of a column of splits at most."""


def check_split_columns(part: DataPart, used: Collection[str], log: Log) -> None:
    """Check that no column names the split of each row of a table that is split by content. Log a column of
    folds, which is not used.

    `used` are the columns that are read.

    Raises: UserError: a column names splits.
    """
    for column in part.columns:
        name = column.strip().lower().replace(" ", "_").replace("-", "_")
        if column in used or (name not in SPLIT_COLUMNS and name not in TRUE_SPLITS):
            continue
        values = _values(part, column)
        splits = _splits_by_value(name, values)
        if {"train"} < {*splits.values()}:
            names = list_names(sorted({*splits.values()}))
            kind = "folder" if part.is_folder else "file"
            raise UserError(
                f"{part}: the column '{column}' ({list_names(values)}) names the split of each row, and is "
                f"not read; write the rows of each split to a {kind} of its own, named {names}, or rename "
                "the column, to hold rows out at random"
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
        of_true, of_false = TRUE_SPLITS[name]
        truths = {value: TRUTH_VALUES.get(value.strip().lower().removesuffix(".0")) for value in values}
        return {value: of_true if truth else of_false for value, truth in truths.items() if truth is not None}
    if not all(map(is_split_like, values)):
        return {}
    splits = {value: split_of_name(value) for value in values if not is_unlabeled_name(value)}
    return {value: split for value, split in splits.items() if split is not None}
