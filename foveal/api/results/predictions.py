"""The answers of a run to rows, as a table of Python."""

from collections.abc import Mapping, Sequence
from typing import Any

from foveal.api.results.answer_table import TOP_COLUMN
from foveal.api.results.table import Table
from foveal.data.core.fields import Fields

REASON_COLUMN = "reason"


def prediction_table(
    records: Sequence[Fields], label_values: Mapping[str, Any], has_top: bool, in_memory: bool
) -> Table:
    """Return the records of answers as a table.

    Labels that were numbers in memory are `label_values`. Without `has_top`, there are no likeliest answers,
    and where all rows were used no reasons. An image in memory is told by its index.
    """
    dropped = set() if has_top else {TOP_COLUMN}
    if not any(record[REASON_COLUMN] for record in records):
        dropped.add(REASON_COLUMN)
    rows = []
    for index, record in enumerate(records):
        row = {name: cell for name, cell in record.items() if name not in dropped}
        if in_memory:
            row = {name: f"{name} {index}" if _is_image(cell) else cell for name, cell in row.items()}
        rows.append(row | {"answer": _value(row["answer"], label_values)})
        if row.get(TOP_COLUMN):
            rows[-1][TOP_COLUMN] = _top(row[TOP_COLUMN], label_values)
    return Table(rows)


def _is_image(cell: Any) -> bool:
    return isinstance(cell, dict) and isinstance(cell.get("bytes"), bytes)


def _value(answer: Any, label_values: Mapping[str, Any]) -> Any:
    """Return the value of a label, or of the label of each place."""
    if isinstance(answer, list):
        return [label_values.get(label, label) for label in answer]
    return label_values.get(answer, answer)


def _top(answers: list[Any], label_values: Mapping[str, Any]) -> list[Any]:
    """Return the likeliest answers, or those of each place, with the values of labels."""
    return [
        _top(each, label_values)
        if isinstance(each, list)
        else each | {"answer": _value(each["answer"], label_values)}
        for each in answers
    ]
