"""Series of vectors with labels, from `.ts` files, `.npz` arrays and JSON lines.

A row has `values` (T, C) in float32 and, if the file has one, a `label`, T `labels` or a `text`.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveal.core.errors import UserError
from foveal.core.parse_json import parse_row
from foveal.data.core.fields import Fields, Record, as_texts
from foveal.data.core.rows import Row, SkippedRow, validate_rows
from foveal.data.files.data_part import ARRAYS_SUFFIX, DataPart
from foveal.data.files.json_rows import read_json_rows
from foveal.data.files.lines import Line, LineReader
from foveal.data.files.npz import LABEL_NAMES, SOURCE_NAMES, array_shapes, first_name, read_arrays
from foveal.data.files.parquet import parquet_columns, parquet_rows
from foveal.data.files.utf8 import open_file, open_lines

MAX_SERIES_LINE_BYTES = 1 << 26
"""Largest number of bytes of a line."""
TARGET_FIELDS = {
    "label": "one label for the whole series",
    "labels": "a label for each step",
    "text": "a text for the whole series",
}
"""The fields of a series' target, for messages."""
LABEL = "label"
"""The field of a label, and its column in a table unless another is named."""
LABEL_FIELDS = (LABEL, "labels")
LOOKED_AT = 20
"""First series that decide how many channels all must have."""
MAX_HEADER_LINES = 1000
"""Largest number of lines of the header of a `.ts` file."""


def read_series(
    path: Path, targets: Sequence[str] = LABEL_FIELDS, encoding: str = "", label: str = LABEL
) -> Iterator[Row | SkippedRow]:
    """Read every series of a file, in order. All must have as many channels as most of the first series, and
    the fields of the first of these.

    `targets` are the fields to read in addition to `values`, if the file has them. Series that are damaged,
    have no steps, or have missing values are skipped rows. Lines that are not UTF-8 are decoded by
    `encoding`. `label` is the column of a table that becomes the field `label`.

    Raises: UserError: the whole file can't be used.
    """
    read = SERIES_READERS.get(path.suffix.lower())
    if read is None:
        raise UserError(
            f"{path}: series are read from {', '.join(SERIES_READERS)}; convert it to one of them"
        )
    records = _select_fields(read(path, encoding, label), targets)
    head = [*islice(records, LOOKED_AT)]
    usable = [
        fields
        for _, record in head
        if isinstance(record, dict) and isinstance(fields := _check_series(record), dict)
    ]
    channels = Counter(fields["values"].shape[1] for fields in usable)
    reference = max(usable, key=lambda fields: channels[fields["values"].shape[1]], default=Fields())
    name = "the first series" if usable and reference is usable[0] else "most series"

    def check(record: Fields) -> Fields | str:
        nonlocal reference
        fields = _check_series(record)
        if isinstance(fields, str):
            return fields
        reference = reference or fields
        return _difference(fields, reference, name) or fields

    return validate_rows(str(path), chain(head, records), check)


def _select_fields(records: Iterator[Record], targets: Sequence[str]) -> Iterator[Record]:
    """Yield the records with only the fields `values` and `targets`."""
    for location, record in records:
        if isinstance(record, str):
            yield location, record
        else:
            yield location, {name: record[name] for name in ("values", *targets) if name in record}


def are_series(part: DataPart) -> bool:
    """Return whether a part is a file of arrays, or a `.ts` file of series (not of TypeScript)."""
    if part.suffix != ".ts" or not part.is_file:
        return part.is_file and part.suffix == ARRAYS_SUFFIX
    with open_file(part.path) as file:
        return any(line.strip().lower() == b"@data" for line in islice(file, MAX_HEADER_LINES))


def describe_series(part: DataPart) -> str:
    """Return a clause that says how a file of series is read."""
    shape = part.arrays.get(name := first_name(SOURCE_NAMES, part.arrays) or "", ())
    if len(shape) == 3:
        axes = "{:,} series of {:,} steps of {:,} channels"
        if shape[1] == shape[2]:
            axes += " (if they are square pictures, name the array images)"
    elif len(shape) == 2 and "lengths" not in part.arrays:
        axes = "{:,} series of {:,} steps of one channel"
    else:
        return f"{part.path.name} is a file of series"
    return f"{part.path.name} is a file of series, {name} {shape} being {axes.format(*shape)}"


def _check_series(record: Fields) -> Fields | str:
    """Return finite `values` in float32 and the target as texts, or the reason why the series
    can't be used."""
    try:
        with np.errstate(over="ignore"):
            values = np.asarray(record["values"], np.float32)
    except (ValueError, TypeError, OverflowError):
        return "its values are not numbers, equally many at each step; fix the series"
    if values.ndim == 1 and values.size:
        missing = np.flatnonzero(~np.isfinite(values))
        null = f" with value {missing[0] + 1} missing (fill it in)" if missing.size else ""
        return f"its values are a flat list{null}; write a step of one channel as [number]: [[1.5], [2.0]]"
    if values.ndim != 2 or not values.size:
        return f"its values have the shape {values.shape}; (steps, channels) is needed"
    if not np.isfinite(values).all():
        return "a value is missing or not finite; fill it in"
    labels = _labels(record, len(values))
    return labels if isinstance(labels, str) else {"values": values} | labels


def _difference(fields: Fields, reference: Fields, name: str) -> str:
    """Say how a series differs from `reference`, called `name`. Empty if there is no difference."""
    if fields.keys() != reference.keys():
        return f"has {', '.join(fields)}, and {name} {', '.join(reference)}; give all the same fields"
    channels, needed = fields["values"].shape[1], reference["values"].shape[1]
    return "" if channels == needed else f"has {channels} channels, and {name} {needed}; fix the series"


def _labels(record: Fields, steps: int) -> Fields | str:
    """Return the target of a series as texts, if there is one, or the reason why it can't be used."""
    other = {name: value for name, value in record.items() if name not in ("values", "labels")}
    if "labels" not in record:
        return as_texts(other)
    labels = record["labels"]
    if not isinstance(labels, list) or len(labels) != steps:
        return f"its labels are not a list of {steps}, one for each step; fix them"
    texts = as_texts({f"labels, {number}": label for number, label in enumerate(labels, 1)})
    return texts if isinstance(texts, str) else other | {"labels": [*texts.values()]}


def _jsonl(path: Path, encoding: str, label: str) -> Iterator[Record]:
    """Read `{"values": [[...], ...], "label": "..."}`, or `"labels"` with a label for each step."""
    return (
        (f"line {line.number}", line.reason or _json_fields(line.text, label))
        for line in _lines(path, encoding)
    )


def _json(path: Path, encoding: str, label: str) -> Iterator[Record]:
    """Read the objects of a `.json`, with the fields of `_jsonl`."""
    return ((location, _series_fields(row, label)) for location, row in read_json_rows(path, encoding))


def _json_fields(text: str, label: str) -> Fields | str:
    try:
        row = parse_row(text)
    except ValueError as error:
        return f"not JSON: {error}; fix the line"
    return _series_fields(row, label)


def _series_fields(row: object, label: str) -> Fields | str:
    """Return the fields of a row of a table, that of the column `label` as `label`."""
    if not isinstance(row, dict) or "values" not in row:
        return 'a JSON object is needed: {"values": [[...], ...], "label": "..."}'
    if label != LABEL:
        named = {LABEL: row[label]} if label in row else {}
        row = {name: value for name, value in row.items() if name not in (LABEL, label)} | named
    if all(name in row for name in LABEL_FIELDS):
        return 'has "label" and "labels"; leave one of them out'
    return row


def _ts(path: Path, encoding: str, label: str) -> Iterator[Record]:
    """Read the format of sktime and aeon: settings (`@`), comments (`#`, `%`) and, after `@data`, one series
    per line.

    Channels are separated by `:`, and the steps of a channel by `,`. The label comes last.
    """
    labels: list[str] | None = None
    in_data = False
    for number, text, reason in _lines(path, encoding):
        name, *settings = text.split() or [""]
        name, is_true = name.lower(), [word.lower() for word in settings[:1]] == ["true"]
        if in_data or reason:
            yield f"line {number}", reason or _ts_fields(text, labels)
        elif name in ("@timestamps", "@targetlabel") and is_true:
            raise UserError(f"{path}, line {number}: {name} is not read; give equal steps and class labels")
        elif not name.startswith(("@", "#", "%")):
            raise UserError(f"{path}, line {number}: neither a setting (@) nor after a line @data; fix it")
        elif name == "@classlabel" and is_true:
            labels = settings[1:]
        in_data = in_data or name == "@data"


def _ts_fields(text: str, labels: list[str] | None) -> Fields | str:
    channels = text.strip().split(":")
    fields: Fields = {}
    if labels is not None:
        fields["label"] = channels.pop().strip()
        if fields["label"] not in labels:
            return f"its label '{fields['label']}' is not among the header's; fix one of them"
    try:
        columns = [[float(step.replace("?", "nan")) for step in channel.split(",")] for channel in channels]
    except ValueError as error:
        return f"{error}; fix the series"
    if len({len(column) for column in columns}) > 1:
        return "its channels differ in length; fix the series"
    return {"values": np.array(columns).T} | fields


def _npz(path: Path, encoding: str, label: str) -> Iterator[Record]:
    """Read `x` (N, T, C), with `lengths` (N,) if there is padding, or concatenated series `x` (steps, C) with
    `lengths`; or `x` (N, T), series of one channel.

    `y` is (N,), or has the shape of `x` without C. Other names of `x` and `y` are `SOURCE_NAMES` and
    `LABEL_NAMES`.
    """
    arrays, name = _arrays(path)
    x, y, lengths = arrays["x"], arrays.get("y"), arrays.get("lengths")
    if x.ndim == 2 and lengths is None and (y is None or len(y) == len(x)):
        x = x[..., np.newaxis]
    if x.dtype.kind not in "fiub" or x.ndim not in (2, 3) or (x.ndim == 2 and lengths is None):
        raise UserError(
            f"{path}: {name} is {x.dtype} {x.shape}; needed: numbers (series, steps, channels), "
            "or (steps, channels) and the series' lengths"
        )
    if y is not None and y.shape == (len(x), 1):
        y = y[:, 0]
    if lengths is None:
        lengths = np.full(len(x), x.shape[1])
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or not _lengths_fit(lengths, x):
        raise UserError(f"{path}: lengths {lengths.dtype} {lengths.shape} don't fit x {x.shape}; fix them")
    if y is not None and y.shape not in (lengths.shape, x.shape[:-1]):
        raise UserError(
            f"{path}: y is {y.shape}; needed: a label per series {lengths.shape}, or per step (a column for "
            "each class becomes a label by numpy.argmax(y, 1))"
        )
    steps = x.reshape(-1, x.shape[-1])
    starts = np.arange(len(x)) * x.shape[1] if x.ndim == 3 else lengths.cumsum() - lengths
    for i, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
        fields: Fields = {"values": steps[start : start + length]}
        if y is not None and y.shape == lengths.shape:
            fields["label"] = y[i].item()
        elif y is not None:
            fields["labels"] = y.reshape(-1)[start : start + length].tolist()
        yield f"series {i + 1}", fields


def _lengths_fit(lengths: NDArray[Any], x: NDArray[Any]) -> bool:
    if (lengths < 0).any():
        return False
    if x.ndim == 2:
        return bool(lengths.sum() == len(x))
    return len(lengths) == len(x) and bool((lengths <= x.shape[1]).all())


def _arrays(path: Path) -> tuple[dict[str, NDArray[Any]], str]:
    """Return the arrays `x`, `y` (as texts) and `lengths` of a file, and the name of `x` in the file."""
    shapes = array_shapes(path)
    source, label = first_name(SOURCE_NAMES, shapes) or SOURCE_NAMES[0], first_name(LABEL_NAMES, shapes)
    arrays = read_arrays(path, [source], [label or LABEL_NAMES[0], "lengths"])
    named = {"x": arrays[source]} | {name: arrays[name] for name in ("lengths",) if name in arrays}
    return named | ({"y": arrays[label].astype(str)} if label in arrays else {}), source


def _lines(path: Path, encoding: str) -> Iterator[Line]:
    """Yield the lines of a file that are not blank."""
    with open_lines(path) as file:
        yield from (
            line
            for line in LineReader(file.readline, MAX_SERIES_LINE_BYTES, encoding)
            if line.reason or line.text.strip()
        )


def _parquet(path: Path, encoding: str, label: str) -> Iterator[Record]:
    """Read the columns of a table, which are the fields of `_jsonl`."""
    columns = parquet_columns(path)
    names = [name for name in dict.fromkeys(("values", *TARGET_FIELDS, label)) if name in columns]
    for location, record in parquet_rows(path, names, MAX_SERIES_LINE_BYTES):
        yield location, record if isinstance(record, str) else _series_fields(record, label)


SERIES_READERS = {".ts": _ts, ".npz": _npz, ".jsonl": _jsonl, ".json": _json, ".parquet": _parquet}
"""A reader for each suffix."""
