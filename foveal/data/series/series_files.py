"""Series of vectors with labels, from `.ts` files, `.npz` arrays and JSON lines.

A row has `values` (T, C) in float32 and, where the file has any, one `label`, T `labels` or a `text`.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveal.core.errors import UserError
from foveal.data.core.fields import Fields, Record, as_texts
from foveal.data.core.rows import Row, SkippedRow, validate_rows
from foveal.data.files.data_part import ARRAYS_SUFFIX, DataPart
from foveal.data.files.lines import Line, LineReader
from foveal.data.files.utf8 import open_file

MAX_SERIES_LINE_BYTES = 1 << 26
"""Bytes of the longest line that is taken."""
TARGET_FIELDS = {
    "label": "one label for the whole series",
    "labels": "a label for each step",
    "text": "a text for the whole series",
}
"""What a file may say of a series, in words."""
LABEL_FIELDS = ("label", "labels")
MAX_HEADER_LINES = 1000
"""Lines in which the header of a `.ts` file ends."""


def read_series(path: Path, targets: Sequence[str] = LABEL_FIELDS) -> Iterator[Row | SkippedRow]:
    """Read every series of a file, in order, all with as many channels and the same fields as the first.

    `targets` are the fields that are read beside `values`, where the file has them. A series that is broken,
    has no steps, or misses a value, is a skipped row.

    Raises: UserError: the whole file can't be used.
    """
    read = SERIES_READERS.get(path.suffix.lower())
    if read is None:
        raise UserError(
            f"{path}: series are read from {', '.join(SERIES_READERS)}; convert it to one of them"
        )
    first: Fields = {}

    def check(record: Fields) -> Fields | str:
        fields = _check_series(record)
        if isinstance(fields, str):
            return fields
        if not first:
            first.update(fields)
        return _difference(fields, first) or fields

    return validate_rows(str(path), _wanted(read(path), targets), check)


def _wanted(records: Iterator[Record], targets: Sequence[str]) -> Iterator[Record]:
    """Yield the records with no other fields than `values` and `targets`."""
    for place, record in records:
        if isinstance(record, str):
            yield place, record
        else:
            yield place, {name: record[name] for name in ("values", *targets) if name in record}


def are_series(part: DataPart) -> bool:
    """Return whether a file holds arrays, or is a `.ts` file of series, not of TypeScript."""
    if part.suffix != ".ts" or not part.is_file:
        return part.is_file and part.suffix == ARRAYS_SUFFIX
    with open_file(part.path) as file:
        return any(line.strip().lower() == b"@data" for line in islice(file, MAX_HEADER_LINES))


def _check_series(record: Fields) -> Fields | str:
    """Finite `values` of float32, and labels as texts; or why they are not."""
    try:
        with np.errstate(over="ignore"):
            values = np.asarray(record["values"], np.float32)
    except (ValueError, TypeError, OverflowError):
        return "its values are not numbers, as many at each step; mend it"
    if values.ndim != 2 or not values.size:
        return f"its values have the shape {values.shape}; (steps, channels) is needed"
    if not np.isfinite(values).all():
        return "a value is missing or not finite; fill it in"
    labels = _labels(record, len(values))
    return labels if isinstance(labels, str) else {"values": values} | labels


def _difference(fields: Fields, first: Fields) -> str:
    """How a series differs from the first; empty if it doesn't."""
    if fields.keys() != first.keys():
        return f"has {', '.join(fields)}, and the first series {', '.join(first)}; make them alike"
    channels, needed = fields["values"].shape[1], first["values"].shape[1]
    return "" if channels == needed else f"has {channels} channels, and the first series {needed}; mend it"


def _labels(record: Fields, steps: int) -> Fields | str:
    """Return the target of a series, if there is any, as texts; or why it can't be used."""
    whole = {name: value for name, value in record.items() if name not in ("values", "labels")}
    if "labels" not in record:
        return as_texts(whole)
    labels = record["labels"]
    if not isinstance(labels, list) or len(labels) != steps:
        return f"its labels are not a list of {steps}, as many as it has steps; mend it"
    texts = as_texts({f"labels, {number}": label for number, label in enumerate(labels, 1)})
    return texts if isinstance(texts, str) else whole | {"labels": [*texts.values()]}


def _jsonl(path: Path) -> Iterator[Record]:
    """`{"values": [[...], ...], "label": "..."}`, or `"labels"` with one for each step."""
    return ((f"line {line.number}", line.reason or _json_fields(line.text)) for line in _lines(path))


def _json_fields(text: str) -> Fields | str:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"not JSON: {error}; mend it"
    if not isinstance(row, dict) or "values" not in row:
        return 'a JSON object is needed: {"values": [[...], ...], "label": "..."}'
    if all(name in row for name in LABEL_FIELDS):
        return 'has "label" and "labels"; leave one of them out'
    return row


def _ts(path: Path) -> Iterator[Record]:
    """The form of sktime and aeon: settings (`@`), notes (`#`, `%`) and, behind `@data`, a series a line.

    Its channels are parted by `:`, the steps of each by `,`; the label is the last part.
    """
    labels: list[str] | None = None
    inside = False
    for number, text, why in _lines(path):
        name, *settings = text.split() or [""]
        name, on = name.lower(), [word.lower() for word in settings[:1]] == ["true"]
        if inside or why:
            yield f"line {number}", why or _ts_fields(text, labels)
        elif name in ("@timestamps", "@targetlabel") and on:
            raise UserError(f"{path}, line {number}: {name} is not read; give equal steps and class labels")
        elif not name.startswith(("@", "#", "%")):
            raise UserError(f"{path}, line {number}: neither a setting (@) nor behind a line @data; mend it")
        elif name == "@classlabel" and on:
            labels = settings[1:]
        inside = inside or name == "@data"


def _ts_fields(text: str, labels: list[str] | None) -> Fields | str:
    channels = text.strip().split(":")
    fields: Fields = {}
    if labels is not None:
        fields["label"] = channels.pop().strip()
        if fields["label"] not in labels:
            return f"its label '{fields['label']}' is not among the header's; mend one of them"
    try:
        columns = [[float(step.replace("?", "nan")) for step in channel.split(",")] for channel in channels]
    except ValueError as error:
        return f"{error}; mend it"
    if len({len(column) for column in columns}) > 1:
        return "its channels differ in length; mend it"
    return {"values": np.array(columns).T} | fields


def _npz(path: Path) -> Iterator[Record]:
    """`x` (N, T, C), with `lengths` (N,) where the rest is padding; or `x` (steps, C), and the `lengths` of
    the series that lie in it one behind the other. `y` is (N,), or like `x` without its C."""
    arrays = _arrays(path)
    x, y, lengths = arrays["x"], arrays.get("y"), arrays.get("lengths")
    if x.dtype.kind not in "fiub" or x.ndim not in (2, 3) or (x.ndim == 2 and lengths is None):
        raise UserError(
            f"{path}: x is {x.dtype} {x.shape}; needed: numbers (series, steps, channels), "
            "or (steps, channels) and the series' lengths"
        )
    if lengths is None:
        lengths = np.full(len(x), x.shape[1])
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or not _lengths_fit(lengths, x):
        raise UserError(f"{path}: lengths {lengths.dtype} {lengths.shape} don't fit x {x.shape}; mend them")
    if y is not None and y.shape not in (lengths.shape, x.shape[:-1]):
        raise UserError(f"{path}: y is {y.shape}; needed: a label a series {lengths.shape}, or one a step")
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


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The file's arrays; those of Python objects would need pickle, and are refused."""
    with open_file(path) as file:
        try:
            with np.load(file, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in ("x", "y", "lengths") if name in stored}
            if "y" in arrays:
                arrays["y"] = arrays["y"].astype(str)
        except Exception as error:  # of numpy, zipfile and zlib, of many kinds
            raise UserError(f"{path}: not readable as .npz: {error}; save it with numpy.savez") from None
    if "x" not in arrays:
        raise UserError(f"{path}: no array x (series, steps, channels); save it with numpy.savez(path, x=x)")
    return arrays


def _lines(path: Path) -> Iterator[Line]:
    """Those that are not blank."""
    with open_file(path) as file:
        yield from (
            line
            for line in LineReader(file.readline, MAX_SERIES_LINE_BYTES)
            if line.reason or line.text.strip()
        )


SERIES_READERS = {".ts": _ts, ".npz": _npz, ".jsonl": _jsonl}
"""A reader for each suffix."""
