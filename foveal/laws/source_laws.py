"""The laws of whole models that read a source, by the logits they return for it, as functions.

Each checks sources of one `length`, so that the smallest length at which a law is broken can be searched.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from foveal.laws.law import LawBroken, require, require_gradients, require_nothing_kept, require_same_rows

Logits = Callable[[nn.Module, Tensor, Tensor | None, Tensor], Tensor]
"""Returns the logits (B, C), or (B, S, C) with zeros behind a row, of a model for sources with their lengths.
The last argument are the numbers of the rows."""
MORE_PADDING = 3
"""Places that are added behind all rows."""


@dataclass(frozen=True)
class SourceTrial:
    """A model that reads a source, in evaluation mode, under test."""

    model: nn.Module
    logits: Logits
    source: Tensor
    """Tokens (B, S), or numbers (B, S, ...); images (B, C, H, W)."""
    has_places: bool
    """Images have none."""
    tolerance: float
    has_lengths: bool = True
    """Sources with places may be of different lengths in a batch."""

    def lengths(self, length: int) -> Tensor | None:
        """Return lengths of the rows from `length` down to 1; None if all are equal."""
        if not (self.has_places and self.has_lengths):
            return None
        return torch.tensor([length, max(1, length // 2), 1, max(1, length - length // 3)])

    def cut(self, length: int) -> Tensor:
        """Return the sources up to a length."""
        return self.source[:, :length] if self.has_places else self.source

    def run(self, source: Tensor, lengths: Tensor | None) -> Tensor:
        """Return the logits of all rows."""
        return self.logits(self.model, source, lengths, torch.arange(len(source)))


def keeps_nothing(trial: SourceTrial, length: int) -> None:
    """Check that the model keeps nothing between two calls: the same source has the same logits again.

    Raises: LawBroken: it keeps something.
    """
    source, lengths = trial.cut(length), trial.lengths(length)
    other, others = source.flip(0), None if lengths is None else lengths.flip(0)
    require_nothing_kept(trial.model, lambda: [trial.run(source, lengths)], lambda: trial.run(other, others))


@torch.no_grad()
def padding(trial: SourceTrial, length: int) -> None:
    """Check that what stands behind each row (numbers, NaN, or tokens) changes no logit.

    Raises: LawBroken: padding leaks.
    """
    lengths = trial.lengths(length)
    assert lengths is not None
    results = []
    for value in (0.0, 1e3, torch.nan) if trial.source.is_floating_point() else (0, 1):
        source = trial.cut(length).clone()
        for row, size in enumerate(lengths.tolist()):
            source[row, size:] = value
        results.append(trial.run(source, lengths))
    for other in results[1:]:
        problem = "what stands in the padding changes outputs: padding leaks"
        require_same_rows(other, results[0], 0.0, problem)


@torch.no_grad()
def more_padding(trial: SourceTrial, length: int) -> None:
    """Check that more padding behind all rows changes no logit.

    Raises: LawBroken: padding counts.
    """
    source, lengths = trial.cut(length), trial.lengths(length)
    longer = torch.cat([source, source[:, :1].expand(-1, MORE_PADDING, *source.shape[2:])], 1)
    few, many = trial.run(source, lengths), trial.run(longer, lengths)
    if many.dim() > 2:
        many = many[:, : few.shape[1]]
    mode = "in training, " if trial.model.training else ""
    require_same_rows(many, few, trial.tolerance, f"{mode}more padding changes outputs: padding counts")


def more_padding_in_training(trial: SourceTrial, length: int) -> None:
    """Check `more_padding` in training mode, where norms take the statistics of the batch. Dropout is off.

    Raises: LawBroken: padding counts.
    """
    with _in_training(trial) as training:
        more_padding(training, length)


def is_random_in_training(trial: SourceTrial, length: int) -> bool:
    """Return whether the model draws random numbers in training, besides those of dropout."""
    with _in_training(trial) as training, torch.no_grad():
        source, lengths = trial.cut(length), trial.lengths(length)
        first, again = training.run(source, lengths), training.run(source, lengths)
        return not torch.allclose(first, again, equal_nan=True)


@contextmanager
def _in_training(trial: SourceTrial) -> Iterator[SourceTrial]:
    """Return the trial of a copy of the model in training mode, without dropout."""
    model = deepcopy(trial.model).train()
    for layer in model.modules():
        if isinstance(layer, nn.Dropout):
            layer.p = 0.0
    yield replace(trial, model=model)


@torch.no_grad()
def causality(trial: SourceTrial, length: int) -> None:
    """Check that the places of a source from any place on change no earlier output.

    Raises: LawBroken: an earlier output depends on later places.
    """
    source, other = trial.cut(length), trial.cut(length).roll(1, 0)
    outputs = trial.run(source, None)
    for cut in range(1, length):
        changed = trial.run(torch.cat([source[:, :cut], other[:, cut:]], 1), None)
        problem = f"the outputs before position {cut} depend on the inputs from there on"
        require_same_rows(changed[:, :cut], outputs[:, :cut], trial.tolerance, problem)


@torch.no_grad()
def batch(trial: SourceTrial, length: int) -> None:
    """Check that a source alone, without padding, has the logits that it has in a batch.

    Raises: LawBroken: rows see each other, or their padding.
    """
    source, lengths = trial.cut(length), trial.lengths(length)
    logits = trial.run(source, lengths)
    for row in range(len(source)):
        own = None if lengths is None else lengths[row : row + 1]
        one = source[row : row + 1] if own is None else source[row : row + 1, : int(own)]
        alone = trial.logits(trial.model, one, own, torch.tensor([row]))
        in_batch = logits[row : row + 1, : alone.shape[1]] if alone.dim() > 2 else logits[row : row + 1]
        problem = "a row alone has other outputs than in a batch"
        try:
            require_same_rows(alone, in_batch, trial.tolerance, problem)
        except LawBroken as broken:
            place = broken.place.replace("row 0", f"row {row}")
            raise LawBroken(problem, broken.difference, place) from None


@torch.no_grad()
def permutation(trial: SourceTrial, length: int, each_place: bool) -> None:
    """Check that a model without positions does not know the order of the places of a source.

    With the places in another order, the logits of a whole source are the same, and those of places are in
    that order.

    Raises: LawBroken: the order changes logits.
    """
    source, lengths = trial.cut(length), trial.lengths(length)
    order = torch.arange(length).repeat(len(source), 1)
    for row, size in enumerate([length] * len(source) if lengths is None else lengths.tolist()):
        order[row, :size] = order[row, :size].flip(0)
    rows = torch.arange(len(source))[:, None]
    logits, permuted = trial.run(source, lengths), trial.run(source[rows, order], lengths)
    if each_place:
        logits = logits[rows, order]
    require_same_rows(permuted, logits, trial.tolerance, "the order of the places changes outputs")


def every_parameter_learns(trial: SourceTrial, length: int) -> None:
    """Check that every parameter's gradient exists and is finite.

    Raises: LawBroken: a parameter learns nothing, or its gradient is not finite.
    """
    logits = trial.run(trial.cut(length), trial.lengths(length))
    require(logits.isfinite().all(), "an output is not finite")
    require_gradients(trial.model, (logits**3).sum())
