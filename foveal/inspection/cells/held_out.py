"""The held-out text of a language model in which units are searched: its two halves, and the labels of its
tokens."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.inspection.cells.ablation import log_probability, log_probability_without
from foveal.inspection.cells.compute import token_labels, with_controls
from foveal.inspection.cells.probes import Probe
from foveal.inspection.cells.searched_text import FEWEST_TOKENS, Pieces, liveliest
from foveal.inspection.read_states import read_chunks, state_names
from foveal.inspection.run_protocols import InspectedRun, held_out_examples

MOST_TOKENS, TOKENS_BEFORE = 200_000, 240
"""Tokens of held-out text that are read, half of them for the search, and those that the model has read
before the shown ones."""
ROWS, SHORTEST_ROW = 32, 64
"""Rows of a half that are read side by side at most, and the tokens of a row at least."""


@dataclass(frozen=True)
class HeldOutText:
    """Held-out text in rows: the first half of the rows for the search, the second half for the report."""

    run: InspectedRun
    split: str
    tokens: Int[Tensor, "R T"]
    labels: Float[Tensor, "R T L"]
    """The value of each probe after each token, and those of the controls."""

    @property
    def reported(self) -> Int[Tensor, "r T"]:
        """The rows of the second half."""
        return self.tokens[len(self.tokens) // 2 :]

    @property
    def window(self) -> int:
        """The tokens that a model whose state would grow reads at once."""
        length: int = self.run.config.data.context_length
        return length

    def names(self) -> list[str]:
        """Return the names of the states, from the first layer on."""
        return state_names(self.run.model)

    def chunks(self, layers: Sequence[str], progress: ProgressCallback) -> Iterator[Mapping[str, Tensor]]:
        """Yield the states after each token, chunk by chunk along the rows."""
        for chunk in read_chunks(self.run.model, self.tokens, self.window, layers, progress):
            yield chunk.states

    def shown(self, layers: Sequence[str], probes: Sequence[int]) -> Pieces:
        """Return the part of the reported text in which some probes change most."""
        part = liveliest(self.labels[len(self.tokens) // 2 :].flatten(0, 1)[:, [*probes]])
        rows = self.reported.flatten()
        return self._pieces(rows[max(0, part.start - TOKENS_BEFORE) : part.start], rows[part], layers)

    def typed(self, text: str, layers: Sequence[str]) -> Pieces:
        """Return a typed text.

        Raises: UserError: the text is empty or too long, or it has a character without a token.
        """
        tokens, limit = self.run.processor.encode(text), self.run.model.limit
        if not len(tokens):
            raise UserError("--text is empty: write a text")
        if limit is not None and len(tokens) > limit:
            raise UserError(f"--text: {len(tokens):,} tokens; the model reads {limit:,} at most")
        read = torch.from_numpy(np.asarray(tokens, np.int64)).to(self.tokens.device)
        return self._pieces(read[:0], read, layers)

    def _pieces(self, before: Int[Tensor, " b"], tokens: Int[Tensor, " T"], layers: Sequence[str]) -> Pieces:
        """Return tokens with the states of a model that has read others before."""
        read = torch.cat([before, tokens])[None]
        chunks = [*read_chunks(self.run.model, read, self.window, layers)]
        states = {name: torch.cat([chunk.states[name][0] for chunk in chunks]) for name in layers}
        texts = tuple(self.run.processor.decode([token]) for token in tokens.tolist())
        return Pieces(texts, {name: values[len(before) :] for name, values in states.items()})

    def log_probabilities(self, layer: str, units: Sequence[int | None]) -> list[float]:
        """Return the mean log-probability in nats of the next tokens of the reported text: for None of the
        model as it is, for a unit while it is held at its mean."""
        model, text = self.run.model, self.reported
        return [
            log_probability(model, text, self.window)
            if unit is None
            else log_probability_without(model, layer, unit, text, self.window)
            for unit in units
        ]


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
    return HeldOutText(run, split, torch.cat(tokens).to(device), torch.cat(labels))
