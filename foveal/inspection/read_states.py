"""The states of a language model's layers after each token of a text."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveal.core.progress import ProgressCallback, no_progress
from foveal.heads.decoder_lm import DecoderLM
from foveal.inspection.capture.capture import capture
from foveal.inspection.capture.modules import published_paths
from foveal.inspection.capture.record import Record
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.mixers.recurrent import Recurrent

LONGEST_CHUNK = 128
"""Tokens of a row that are read at once."""


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
