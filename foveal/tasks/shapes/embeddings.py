"""The vectors of sources: the summaries that an encoder makes of them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from foveal.core.errors import UserError
from foveal.core.progress import ProgressCallback, iterate_batches
from foveal.data.core.rows import Row, SkippedPart, SkippedRow
from foveal.data.open import open_path
from foveal.tasks.shapes.answered_rows import EMPTY_LINE

if TYPE_CHECKING:
    from foveal.tasks.shapes.examples import ExampleTask


def data_rows(task: "ExampleTask", data: str) -> list[Row | SkippedRow]:
    """Return the rows of DATA in order, without their targets."""
    config = task.config.data
    part = open_path(data, config.encoding).sources(task.data_format.source.table)
    rows = task.data_format.read_in_order(part, config)
    return [row for row in rows if not isinstance(row, SkippedPart)]


def text_rows(task: "ExampleTask", texts: Sequence[str]) -> list[Row | SkippedRow]:
    """Return the rows of texts.

    Raises: UserError: the task reads no texts.
    """
    source = task.data_format.source
    if not source.reads_lines:
        raise UserError(f"this run reads no texts (task {task.name}); give a file, images, series or clips")
    places = [f"text {index}" for index in range(len(texts))]
    return [
        source.line_row(place, text) if text.strip() else SkippedRow(place, EMPTY_LINE)
        for place, text in zip(places, texts, strict=True)
    ]


def embed_rows(
    task: "ExampleTask", rows: Sequence[Row | SkippedRow], progress: ProgressCallback
) -> Float[Tensor, "N D"]:
    """Return the summary that the encoder makes of each row.

    Raises: UserError: a row can't be used, or there are no rows.
    """
    skipped = [row for row in rows if isinstance(row, SkippedRow)]
    usable, examples = task.data_format.encode_unlabeled(
        [row for row in rows if isinstance(row, Row)], task.processor, task.config.data, skipped
    )
    if skipped or not usable:
        first = f"{skipped[0].location}: {skipped[0].reason}" if skipped else "no rows to embed"
        raise UserError(first)
    summaries: dict[int, Tensor] = {}
    task.model.eval()
    device = next(task.model.parameters()).device
    with torch.no_grad():
        for batch in iterate_batches(task.example_batches(examples), progress):
            on_device = batch.to(device)
            memory, _ = task.model.encode(on_device.columns, on_device.lengths)
            # Several views of an image stand one after another.
            vectors = memory.summary.unflatten(0, (len(batch.rows), -1)).mean(1).float().cpu()
            summaries |= dict(zip(batch.rows.tolist(), vectors, strict=True))
    return torch.stack([summaries[row] for row in range(len(usable))])
