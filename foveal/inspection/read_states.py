"""The states of a language model's layers after each token of a text."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback, no_progress
from foveal.heads.decoder_lm import DecoderLM
from foveal.inspection.capture.capture import capture
from foveal.inspection.capture.modules import published_paths
from foveal.inspection.capture.record import Record
from foveal.inspection.run_protocols import InspectedRun, held_out_examples
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.mixers.recurrent import Recurrent

LONGEST_CHUNK = 128
"""Tokens of a row that are read at once."""
MOST_TOKENS, ROWS = 20_000, 16
"""Tokens of a held-out text that are read for statistics, and the rows that are read side by side."""


def why_no_states(run: InspectedRun) -> str:
    """Return why the states of a run can't be read token by token; an empty text if they can."""
    fitting = isinstance(run.model, DecoderLM)
    return "" if fitting else f"this view needs a language model (task {run.task.name})"


def check_state_name(run: InspectedRun, layer: str | None, names: Sequence[str]) -> None:
    """Check the option that names one of a run's states; None names none.

    Raises: UserError: there is no such state.
    """
    if layer is not None and layer not in names:
        raise UserError(f"--layer {layer}: {run.run.path} has no such layer; it has {', '.join(names)}")


class HeldOutRows(NamedTuple):
    """The beginning of a held-out text in rows of equal length, on the device of the model."""

    tokens: Int[Tensor, "R T"]
    split: str


def held_out_rows(run: InspectedRun, data: str | None, log: Log) -> HeldOutRows:
    """Return held-out text to read side by side.

    Raises: UserError: the text has no tokens.
    """
    part, split = held_out_examples(run, data, log)
    ids = np.asarray(part[:MOST_TOKENS], np.int64)
    if not len(ids):
        raise UserError(f"{split}: no tokens; name another text with --data")
    rows = min(ROWS, len(ids))
    tokens = torch.from_numpy(ids[: len(ids) // rows * rows]).view(rows, -1)
    return HeldOutRows(tokens.to(next(run.model.parameters()).device), split)


def state_names(model: nn.Module) -> list[str]:
    """Return the names of the states that layers hold, as `foveal.capture` has them, from the first layer on.

    A recurrent layer has `c` and `h`; a block with any other mixer has its output, `features`.
    """
    paths, names = published_paths(model), list[str]()
    for block in (module for module in model.modules() if isinstance(module, Block)):
        recurrent = [module for module in block.modules() if isinstance(module, Recurrent)]
        names += [f"{paths[mixer]}/{part}" for mixer in recurrent for part in sorted(mixer.cell.sizes)]
        names += [] if recurrent else [f"{paths[block]}/features"]
    return names


class Chunk(NamedTuple):
    """A part of a text as a model has read it, along all rows."""

    features: Float[Tensor, "R t D"]
    states: dict[str, Float[Tensor, "R t _"]]
    """The state after each token, by name."""


def read_chunks(
    model: DecoderLM,
    tokens: Int[Tensor, "R T"],
    window: int,
    names: Sequence[str] = (),
    progress: ProgressCallback = no_progress,
) -> Iterator[Chunk]:
    """Yield what the model computes of a text, chunk by chunk along the rows.

    The state is carried from chunk to chunk. A model whose state would grow reads windows without history.
    """
    state = model.init_state(None, len(tokens)) if model.bounded else None
    chunks = torch.split(tokens, min(window, LONGEST_CHUNK) if model.bounded else window, 1)
    for number, chunk in enumerate(chunks):
        progress(number, len(chunks))
        with torch.inference_mode(), _capture_some(model, names) as record:
            features, after, _ = model(chunk, state)
        state = after if model.bounded else None
        yield Chunk(features, {name: record[name][0] for name in names})


def _capture_some(model: nn.Module, names: Sequence[str]) -> AbstractContextManager[Mapping[str, Record]]:
    """Capture the named values; nothing if none is named."""
    return capture(model, *names) if names else nullcontext({})


def bounded_values(name: str, values: Tensor) -> Tensor:
    """Return a state as the layer shows it: of a cell state c tanh(c), which the output gate multiplies."""
    return values.tanh() if name.endswith("/c") else values
