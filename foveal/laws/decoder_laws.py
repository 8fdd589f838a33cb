"""The laws of whole models that decode, by the tokens they read and the logits they return, as functions.

Each checks sequences of one `length`, so that the smallest length at which a law is broken can be searched.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from foveal.core.memory import Memory
from foveal.core.state import State, select_rows
from foveal.laws.law import (
    LawBroken,
    require_close,
    require_gradients,
    require_nothing_kept,
    require_same_rows,
)
from foveal.laws.trial import gradients

ROWS = 4
"""Rows of a batch, and of its memory."""


@dataclass(frozen=True)
class DecoderTrial:
    """A model that decodes, in evaluation mode, under test."""

    model: nn.Module
    """The whole model, with its encoder if there is one."""
    head: Any
    make_memory: Callable[[], Memory | None]
    """Returns the memory of `ROWS` sources; None if the model has no encoder."""
    tolerance: float
    exact: bool = True
    """Causal bit for bit."""

    def tokens(self, length: int, seed: int = 0) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        return torch.randint(self.head.vocabulary, (ROWS, length), generator=generator)

    def begin(self, capacity: int | None = None, rows: Tensor | None = None) -> State:
        """Return the initial state of some rows, or of all."""
        memory, count = self.make_memory(), ROWS if rows is None else len(rows)
        if memory is not None and rows is not None:
            memory = memory.select_rows(rows)
        return self.head.init_state(memory, count, capacity)

    def read(self, tokens: Tensor, state: State, lengths: Tensor | None = None) -> tuple[Tensor, State]:
        """Return the logits (B, T, V) of tokens, and the state after them."""
        features, state, _ = self.head(tokens, state, lengths)
        return self.head.project(features), state

    def same(self, a: Tensor, b: Tensor, problem: str) -> None:
        """Check that logits are equal up to rounding.

        Raises: LawBroken: they are not.
        """
        require_same_rows(a, b, self.tolerance, problem)


def ragged(length: int) -> Tensor:
    """Return lengths of `ROWS` rows from `length` down to 0."""
    return torch.tensor([length, length - length // 3, (length + 1) // 2, 0])


@torch.no_grad()
def keeps_nothing(trial: DecoderTrial, length: int) -> None:
    """Check that the model keeps nothing between two calls: the same tokens give the same logits again.

    Raises: LawBroken: it keeps something.
    """
    tokens, other = trial.tokens(length), trial.tokens(length, 1)
    require_nothing_kept(
        trial.model,
        lambda: [trial.read(tokens, trial.begin())[0]],
        lambda: trial.read(other, trial.begin()),
    )


@torch.no_grad()
def start_state(trial: DecoderTrial, length: int) -> None:
    """Check that a call without a state begins as from `init_state`, with any capacity.

    Raises: LawBroken: it does not.
    """
    tokens = trial.tokens(length)
    without_memory = trial.make_memory() is None
    want, _ = trial.read(tokens, None if without_memory else trial.begin())
    for capacity in (None, 2 * length):
        got, _ = trial.read(tokens, trial.begin(capacity))
        trial.same(got, want, "init_state begins elsewhere than a call without a state")


@torch.no_grad()
def chunks(trial: DecoderTrial, length: int) -> None:
    """Check that tokens in two calls, cut anywhere, have the same logits as in one, and the same gradients.

    Raises: LawBroken: they have others.
    """
    tokens = trial.tokens(length)
    whole, _ = trial.read(tokens, trial.begin())
    for cut in range(1, length):
        problem = f"tokens in pieces ({cut} and {length - cut}) have other logits than whole"
        trial.same(_in_pieces(trial, tokens, cut), whole, problem)
    if length > 1:
        with torch.enable_grad():
            pieces, (whole, _) = _in_pieces(trial, tokens, length // 2), trial.read(tokens, trial.begin())
            each = zip(gradients(trial.model, [pieces]), gradients(trial.model, [whole]), strict=True)
        for one, other in each:
            problem = "tokens in pieces have other gradients than the whole"
            require_close(one, other, 10 * trial.tolerance, problem)


def _in_pieces(trial: DecoderTrial, tokens: Tensor, cut: int) -> Tensor:
    """Return the logits of tokens that are read in two calls."""
    first, state = trial.read(tokens[:, :cut], trial.begin())
    rest, _ = trial.read(tokens[:, cut:], state)
    return torch.cat([first, rest], 1)


@torch.no_grad()
def causality(trial: DecoderTrial, length: int) -> None:
    """Check that the tokens from any position on change no earlier logit, bit for bit.

    Raises: LawBroken: an earlier logit depends on later tokens.
    """
    tokens, other = trial.tokens(length), trial.tokens(length, 1)
    logits, _ = trial.read(tokens, trial.begin())
    for cut in range(1, length):
        changed, _ = trial.read(torch.cat([tokens[:, :cut], other[:, cut:]], 1), trial.begin())
        problem = f"the logits before position {cut} depend on the tokens from there on"
        tolerance = 0.0 if trial.exact else trial.tolerance
        require_same_rows(changed[:, :cut], logits[:, :cut], tolerance, problem)


@torch.no_grad()
def padding(trial: DecoderTrial, length: int) -> None:
    """Check that the tokens after each row's length change no logit, and not those of later calls.

    Raises: LawBroken: padding leaks.
    """
    lengths, more = ragged(length), trial.tokens(2, 2)
    hidden = torch.arange(length) >= lengths[:, None]
    results = []
    for other in (trial.tokens(length).where(~hidden, 0), trial.tokens(length).where(~hidden, 1)):
        logits, state = trial.read(other, trial.begin(), lengths)
        results.append(torch.cat([logits.where(~hidden[..., None], 0.0), trial.read(more, state)[0]], 1))
    require_same_rows(results[1], results[0], 0.0, "the tokens in the padding change logits: padding leaks")


@torch.no_grad()
def batch(trial: DecoderTrial, length: int) -> None:
    """Check that a row alone, without padding, has the logits that it has in a batch.

    Raises: LawBroken: rows see each other, or their padding.
    """
    tokens, lengths = trial.tokens(length), ragged(length)
    logits, _ = trial.read(tokens, trial.begin(), lengths)
    for row, size in enumerate(lengths.tolist()):
        if size:
            alone, _ = trial.read(tokens[row : row + 1, :size], trial.begin(rows=torch.tensor([row])))
            problem = "a row alone has other logits than in a batch"
            _same_row(trial, alone[0], logits[row, :size], row, problem)


@torch.no_grad()
def select(trial: DecoderTrial, length: int) -> None:
    """Check that rows that are selected from a state continue as they would have.

    Raises: LawBroken: they continue otherwise.
    """
    tokens, more, rows = trial.tokens(length), trial.tokens(2, 1), torch.tensor([2, 0, 2, 1])
    _, state = trial.read(tokens, trial.begin(), ragged(length))
    selected = select_rows(state, rows)
    want, _ = trial.read(more, state)
    got, _ = trial.read(more[rows], selected)
    trial.same(got, want[rows], "rows that are selected from a state continue otherwise")


@torch.no_grad()
def cached(trial: DecoderTrial, length: int) -> None:
    """Check generation: prompts of different lengths, then one token at a time from the state, equal the
    whole rows without a state.

    Raises: LawBroken: they have other logits.
    """
    prompts, lengths = trial.tokens(length), ragged(length)
    lengths[-1] = 1
    more = trial.tokens(3, 1)
    _, state = trial.read(prompts, trial.begin(length + 3), lengths)
    steps = []
    for token in torch.split(more, 1, 1):
        logits, state = trial.read(token, state)
        steps.append(logits)
    for row, size in enumerate(lengths.tolist()):
        tokens = torch.cat([prompts[row, :size], more[row]])[None]
        whole, _ = trial.read(tokens, trial.begin(rows=torch.tensor([row])))
        problem = f"a token at a time, after a prompt of {size}, has other logits than the whole text"
        _same_row(trial, torch.cat(steps, 1)[row], whole[0, size:], row, problem)


def every_parameter_learns(trial: DecoderTrial, length: int) -> None:
    """Check that every parameter's gradient of the loss exists and is finite.

    Raises: LawBroken: a parameter learns nothing, or its gradient is not finite.
    """
    tokens = trial.tokens(length + 1)
    features, state, aux = trial.head(tokens[:, :-1], trial.begin())
    loss, _ = trial.head.losses(features.flatten(0, 1), tokens[:, 1:].flatten())
    drawn = [part.sum() for part in _parts_named(state, "drawn")]  # learned by REINFORCE
    require_gradients(trial.model, sum([*(sums.sum() for sums in aux.values()), *drawn], loss))


@torch.no_grad()
def loss_of_logits(trial: DecoderTrial, length: int) -> None:
    """Check that the loss is the cross-entropy of the logits.

    Raises: LawBroken: it is not.
    """
    tokens = trial.tokens(length + 1)
    features, _, _ = trial.head(tokens[:, :-1], trial.begin())
    targets = tokens[:, 1:].flatten()
    loss, _ = trial.head.losses(features.flatten(0, 1), targets)
    logits = trial.head.project(features).flatten(0, 1)
    want = nn.functional.cross_entropy(logits, targets, reduction="sum")
    require_close(loss, want, trial.tolerance, "the loss is not the cross-entropy of the logits")


def _same_row(trial: DecoderTrial, a: Tensor, b: Tensor, row: int, problem: str) -> None:
    try:
        trial.same(a[None], b[None], problem)
    except LawBroken as broken:
        place = broken.place.replace("row 0", f"row {row}")
        raise LawBroken(problem, broken.difference, place) from None


def _parts_named(state: Any, name: str) -> list[Tensor]:
    if isinstance(state, dict):
        own = [state[name]] if name in state else []
        return own + [part for each in state.values() for part in _parts_named(each, name)]
    if isinstance(state, (tuple, list)):
        return [part for each in state for part in _parts_named(each, name)]
    return []
