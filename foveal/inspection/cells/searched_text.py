"""What the view `cells` needs of a text, however the model reads it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import torch
from jaxtyping import Float
from torch import Tensor

from foveal.core.progress import ProgressCallback

FEWEST_TOKENS, SHOWN_TOKENS = 400, 300
"""Tokens of held-out text at least, and those of the text that is shown."""


class Pieces(NamedTuple):
    """A part of a text: its tokens, and the states after each, by name."""

    tokens: tuple[str, ...]
    states: dict[str, Float[Tensor, "T _"]]


class SearchedText(Protocol):
    """A held-out text: the first half of its rows is for the search, the second half for the report."""

    @property
    def split(self) -> str: ...

    @property
    def labels(self) -> Float[Tensor, "R T L"]:
        """The value of each probe after each token, and those of the controls."""

    def names(self) -> list[str]:
        """Return the names of the states, from the first layer on."""

    def chunks(self, layers: Sequence[str], progress: ProgressCallback) -> Iterator[Mapping[str, Tensor]]:
        """Yield the states (R, t, units) after each token, in chunks along the rows."""

    def shown(self, layers: Sequence[str], probes: Sequence[int]) -> Pieces:
        """Return the part of the reported text in which some probes, by number, change most."""

    def typed(self, text: str, layers: Sequence[str]) -> Pieces:
        """Return a typed text.

        Raises: UserError: the text is empty or too long, or it has a character without a token.
        """

    def log_probabilities(self, layer: str, units: Sequence[int | None]) -> list[float]:
        """Return the mean log-probability in nats of the reported targets: for None of the model as it is,
        for a unit of the layer while it is held at its mean."""


def liveliest(labels: Float[Tensor, "N P"]) -> slice:
    """Return the part of a text in which the labels change most."""
    parts = torch.split(labels / labels.std(0), SHOWN_TOKENS)
    whole = [part.std(0).clamp(max=1).sum() for part in parts if len(part) == SHOWN_TOKENS]
    start = SHOWN_TOKENS * int(torch.stack(whole).argmax()) if whole else 0
    return slice(start, start + SHOWN_TOKENS)
