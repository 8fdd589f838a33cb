"""The held-out text in which units are searched: its two halves, and the labels of its tokens."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.inspection.cells.compute import token_labels, with_controls
from foveal.inspection.cells.probes import Probe
from foveal.inspection.run_protocols import InspectedRun, held_out_examples

MOST_TOKENS, FEWEST_TOKENS = 200_000, 400
"""Tokens of held-out text that are read, half of them for the search."""
ROWS, SHORTEST_ROW = 32, 64
"""Rows of a half that are read side by side at most, and the tokens of a row at least."""


class HeldOutText(NamedTuple):
    """Held-out text in rows: the first half of the rows for the search, the second half for the report."""

    split: str
    tokens: Int[Tensor, "R T"]
    labels: Float[Tensor, "R T L"]
    """The value of each probe after each token, and those of the controls."""

    @property
    def reported(self) -> Int[Tensor, "r T"]:
        """The rows of the second half."""
        return self.tokens[len(self.tokens) // 2 :]


def read_held_out(run: InspectedRun, data: str | None, probes: Mapping[str, Probe], log: Log) -> HeldOutText:
    """Read the beginning of the held-out text for the search, and its end for the report.

    Raises: UserError: the text is too short.
    """
    part, split = held_out_examples(run, data, log)
    if len(part) < FEWEST_TOKENS:
        raise UserError(
            f"{split}: {len(part):,} tokens are too few to search units in; name a longer text with --data"
        )
    half = min(MOST_TOKENS, len(part)) // 2
    rows = min(ROWS, half // SHORTEST_ROW)
    length = half // rows
    tokens, labels = [], []
    for ids in (part[: rows * length], part[-rows * length :]):
        ids = np.asarray(ids, np.int64)
        characters = run.processor.characters[ids]
        values = with_controls(token_labels(probes, run.processor.decode(ids), characters))
        tokens.append(torch.from_numpy(ids).view(rows, length))
        labels.append(torch.from_numpy(values).view(rows, length, -1))
    device = next(run.model.parameters()).device
    return HeldOutText(split, torch.cat(tokens).to(device), torch.cat(labels))
