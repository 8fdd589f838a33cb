"""The columns of values in memory: of tables of any library, dicts, lists, arrays and datasets of torch."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from foveal.core.errors import UserError

Columns = dict[str, list[Any]]
"""The cells of each column by its name. All columns are equally long."""
SOURCE, LABEL = "", "label"
"""The column of sources whose name is still to be chosen, by their kind, and the column of their labels."""
KINDS = "a path, table, dict of columns, list of texts, pairs, rows or images, arrays or torch Dataset"
SPLIT_NAMES = {"train": "train", "validation": "valid", "valid": "valid", "dev": "valid", "test": "test"}
"""The usual names of splits in a dict of tables, and ours."""


def split_tables(values: Any) -> dict[str, Any]:
    """Return the values of each split of a dict of tables (such as a `DatasetDict`); of anything else, all
    values as the split `train`.

    Raises: UserError: the splits have names that are not known, or lack `train`.
    """
    if not isinstance(values, Mapping) or not values or not all(map(_is_table, values.values())):
        return {"train": values}
    unknown = [str(name) for name in values if name not in SPLIT_NAMES]
    splits = {SPLIT_NAMES[name]: table for name, table in values.items() if name in SPLIT_NAMES}
    if unknown or "train" not in splits or len(splits) < len(values):
        raise UserError(
            f"a dict of the tables {', '.join(map(str, values))}: name them train, valid and test, of which "
            "train is needed"
        )
    return splits


def columns_of(values: Any) -> Columns:
    """Return the columns of values in memory.

    Raises: UserError: the values are of no kind that is read, empty, or their columns differ in length.
    """
    columns = _columns_of(values)
    lengths = {name: len(cells) for name, cells in columns.items()}
    if not columns or not max(lengths.values()):
        raise UserError(f"{type(values).__name__}: no rows in it; give some")
    if len({*lengths.values()}) > 1:
        listed = ", ".join(f"{name or 'the first'} {count:,}" for name, count in lengths.items())
        raise UserError(
            f"{type(values).__name__}: columns of different lengths: {listed}; give each row a cell"
        )
    return columns


def _columns_of(values: Any) -> Columns:
    library = type(values).__module__.partition(".")[0]
    if library == "pandas" and hasattr(values, "columns"):
        return _named(values.columns, [_from_pandas(values.iloc[:, at]) for at in range(values.shape[1])])
    if library == "polars" and hasattr(values, "columns"):
        return {name: values[name].to_list() for name in values.columns}
    if library == "pyarrow" and hasattr(values, "column_names"):
        return {name: values[name].to_pylist() for name in values.column_names}
    if library in ("pandas", "polars", "pyarrow"):
        return {SOURCE: _cells("the column", values)}
    if hasattr(values, "dataset") and hasattr(values, "batch_size"):
        raise UserError(f"{type(values).__name__}: it gives batches; give its rows: loader.dataset")
    if library == "datasets" and hasattr(values, "with_format") and hasattr(values, "__len__"):
        return _from_datasets(values)
    if isinstance(values, Mapping):
        return _named(values, [_cells(name, column) for name, column in values.items()])
    if isinstance(values, tuple) and len(values) == 2 and not isinstance(values[0], str):
        return {SOURCE: _cells("the first", values[0]), LABEL: _cells("the second", values[1])}
    if library in ("numpy", "torch") and hasattr(values, "shape"):
        return {SOURCE: _cells("the array", values)}
    if isinstance(values, Sequence) and not isinstance(values, str | bytes | bytearray):
        return _from_rows(values)
    if library != "builtins" and hasattr(values, "__getitem__") and hasattr(values, "__len__"):
        return _from_rows([values[index] for index in range(len(values))])
    if isinstance(values, Iterable) and not isinstance(values, str | bytes | bytearray):
        return _from_rows([*values])
    raise UserError(f"{type(values).__name__}: not a kind of data that can be read; give {KINDS}")


def _named(names: Iterable[Any], columns: Iterable[list[Any]]) -> Columns:
    """Return columns by their names as texts.

    Raises: UserError: two columns have the same name.
    """
    named: Columns = {}
    for name, cells in zip(map(str, names), columns, strict=True):
        if name in named:
            raise UserError(f"two columns are named '{name}'; rename one")
        named[name] = cells
    return named


def _is_table(value: Any) -> bool:
    library = type(value).__module__.partition(".")[0]
    return isinstance(value, Mapping) or (
        library in ("pandas", "polars", "pyarrow", "datasets")
        and (hasattr(value, "columns") or hasattr(value, "column_names"))
    )


def _from_pandas(column: Any) -> list[Any]:
    """Return the cells of a column, index or array of pandas, with None for missing ones.

    Whole numbers, which pandas turns into floats beside a missing cell, are whole again.
    """
    pairs = [*zip(column.tolist(), column.isna(), strict=True)]
    present = [cell for cell, missing in pairs if not missing]
    has_gap, floats = len(present) < len(pairs), [cell for cell in present if isinstance(cell, float)]
    whole = has_gap and len(floats) == len(present) and all(map(float.is_integer, floats))
    return [None if missing else int(cell) if whole else cell for cell, missing in pairs]


def _from_datasets(values: Any) -> Columns:
    """Return the columns of a `datasets.Dataset`: files as their bytes, and classes by their names."""
    table = values.with_format("arrow")[:]
    columns: Columns = {name: table[name].to_pylist() for name in table.column_names}
    for name, feature in values.features.items():
        names = getattr(feature, "names", None)
        if names:
            columns[name] = [
                names[cell] if isinstance(cell, int) and 0 <= cell < len(names) else None
                for cell in columns[name]
            ]
    return columns


def _cells(name: Any, column: Any) -> list[Any]:
    """Return the cells of a column: numbers and texts of Python, and rows of arrays as arrays.

    Raises: UserError: it is no column.
    """
    if _is_table(column):
        raise UserError(f"{name}: a table; give one table, with the labels as a column of it")
    if type(column).__module__.partition(".")[0] == "pandas":
        return _from_pandas(column)
    if hasattr(column, "to_pylist"):  # of pyarrow
        return [*column.to_pylist()]
    if hasattr(column, "detach"):  # a tensor
        column = column.detach().cpu().numpy()
    if hasattr(column, "ndim"):
        if column.ndim == 0:
            raise UserError(f"{name}: a single number; give an array with a row for each example")
        return [*column] if column.ndim > 1 else column.tolist()
    if isinstance(column, str | bytes | Mapping) or not isinstance(column, Iterable):
        raise UserError(
            f"{name}: a column can't be of the type {type(column).__name__}; give a list of "
            "cells, one for each row"
        )
    return [*column]


def _from_rows(rows: Sequence[Any]) -> Columns:
    """Return the columns of rows: dicts, pairs of a source and a target, or sources alone.

    Raises: UserError: rows of several kinds are mixed.
    """
    if not rows:
        return {}
    kinds = {_row_kind(row) for row in rows}
    if len(kinds) > 1:
        first = _row_kind(rows[0])
        index = next(index for index, row in enumerate(rows) if _row_kind(row) != first)
        raise UserError(f"row 0 is {first}, and row {index} {_row_kind(rows[index])}; give all alike")
    if isinstance(rows[0], Mapping):
        names = dict.fromkeys(str(name) for row in rows for name in row)
        return {name: [row.get(name) for row in rows] for name in names}
    if kinds == {"a pair"}:
        return {SOURCE: [_plain(row[0]) for row in rows], LABEL: [_plain(row[1]) for row in rows]}
    return {SOURCE: [*map(_plain, rows)]}


def _row_kind(row: Any) -> str:
    if isinstance(row, Mapping):
        return "a dict"
    if isinstance(row, tuple | list) and len(row) == 2 and not all(isinstance(x, int | float) for x in row):
        return "a pair"
    if isinstance(row, tuple):
        return f"a tuple of {len(row)}"
    return "a single value"


def _plain(cell: Any) -> Any:
    """Return a cell without a library around it: tensors as arrays, arrays of one number as the number."""
    if hasattr(cell, "detach"):
        cell = cell.detach().cpu().numpy()
    return cell.item() if hasattr(cell, "ndim") and cell.ndim == 0 else cell
