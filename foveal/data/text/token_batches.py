"""Batches of tokens, a pure function of (seed, epoch, index).

Any batch can therefore be computed directly, and the order depends neither on workers nor on earlier batches.
Tokens are (N,), or (N, C) with more about each token; the targets are tokens alone.
"""

from collections.abc import Callable
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from foveal.core.errors import UserError
from foveal.core.runtime import derived_seed
from foveal.data.core.batching import TokenBatch
from foveal.data.core.shuffle import permute_indices
from foveal.data.text.token_store import TokenArray

TokenIndices = NDArray[np.int64]


class LookedUpTokens:
    """Tokens with more about each token, which `look_up` computes when the first of them are read."""

    def __init__(self, count: int, look_up: Callable[[], TokenArray]):
        self._count, self._look_up = count, look_up

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, indices: TokenIndices) -> TokenArray:
        return self._rows[indices]

    @cached_property
    def _rows(self) -> TokenArray:
        return self._look_up()


TokenRows = TokenArray | LookedUpTokens


class StreamBatches:
    """Contiguous streams, for a state that is carried: row r of chunk i + 1 continues row r of chunk i.

    The text is cut into `rows` consecutive streams of equal length, and each stream into chunks of `context`
    tokens. In epoch 0 the first stream begins with the first token. Later epochs begin up to `rows * context
    + context` tokens later, so that chunk boundaries differ. A small text has fewer rows.

    With `micro_batches` > 1 there are `rows` streams for each micro-batch of a step, and each micro-batch has
    its own state. Consecutive batches are the micro-batches of a step. `reset_probability` is the probability
    that a row starts with a new state in the middle of its stream, so that the model does not forget how to
    begin.
    """

    def __init__(
        self,
        tokens: TokenRows,
        rows: int,
        context: int,
        seed: int,
        micro_batches: int = 1,
        reset_probability: float = 0.0,
    ):
        _check_length(tokens, context)
        self.rows = max(1, min(rows, (len(tokens) - 1) // (context * micro_batches)))
        unit = self.rows * micro_batches * context
        if len(tokens) <= unit:
            raise UserError(
                f"the training text has {len(tokens)} tokens: too few for {micro_batches} micro-batches of "
                f"data.context_length={context}; lower training.grad_accumulation or data.context_length"
            )
        self._chunks, self._slack = _count_units(len(tokens), unit, context)
        self.per_epoch = self._chunks * micro_batches
        self.token_rows, self._context, self._seed = tokens, context, seed
        self._micro_batches, self._reset_probability = micro_batches, reset_probability

    def batch(self, epoch: int, index: int) -> TokenBatch:
        """Return chunk `index // micro_batches` of the streams of a micro-batch, (rows, context).

        `stream_starts` is True in the first chunk of an epoch.
        """
        _check_index(index, self.per_epoch)
        offset = derived_seed(self._seed, "streams", epoch) % (self._slack + 1) if epoch else 0
        chunk, micro_batch = divmod(index, self._micro_batches)
        streams = micro_batch * self.rows + np.arange(self.rows)
        starts = offset + (streams * self._chunks + chunk) * self._context
        inputs, targets = _token_windows(self.token_rows, starts, self._context)
        fresh = np.full(self.rows, chunk == 0)
        if self._reset_probability:
            generator = np.random.default_rng(derived_seed(self._seed, "restart", epoch, index))
            fresh |= generator.random(self.rows) < self._reset_probability
        return TokenBatch(inputs, targets, torch.from_numpy(fresh))


class WindowBatches:
    """Every window of `context` tokens once per epoch, in random order. The offset of the windows is random
    too.

    The batches of an epoch have equal sizes. If the windows don't divide evenly, sizes differ by one row.
    """

    def __init__(self, tokens: TokenRows, rows: int, context: int, seed: int):
        _check_length(tokens, context)
        self.num_windows, self._slack = _count_units(len(tokens), context, context)
        self.per_epoch = -(-self.num_windows // rows)
        self.token_rows, self._context, self._seed = tokens, context, seed

    def batch(self, epoch: int, index: int) -> TokenBatch:
        _check_index(index, self.per_epoch)
        indices = np.arange(
            index * self.num_windows // self.per_epoch, (index + 1) * self.num_windows // self.per_epoch
        )
        windows = permute_indices(indices, self.num_windows, derived_seed(self._seed, "windows", epoch))
        offset = derived_seed(self._seed, "phase", epoch) % (self._slack + 1)
        return TokenBatch(*_token_windows(self.token_rows, offset + windows * self._context, self._context))


class TokenEvalBatches:
    """A whole held-out text in contiguous streams: every token but the first is scored exactly once.

    Streams differ in length by at most one token. In the last chunk, `lengths` has the lengths of the
    streams; a length can be 0. A small text has fewer rows, so that each stream is at least one context long.
    """

    def __init__(self, tokens: TokenRows, rows: int, context: int):
        scored = len(tokens) - 1
        if scored < 1:
            raise UserError(
                f"the held-out text has {len(tokens)} token(s), and at least 2 are needed: "
                "give more held-out text"
            )
        self.rows = max(1, min(rows, scored // context))
        ends = np.arange(self.rows + 1) * scored // self.rows
        self._starts, self._sizes = ends[:-1], np.diff(ends)
        self.per_epoch = -(-int(self._sizes.max()) // context)
        self._tokens, self._context = tokens, context

    def batch(self, epoch: int, index: int) -> TokenBatch:
        """Return chunk `index` of every stream, (rows, at most context). All epochs are equal."""
        _check_index(index, self.per_epoch)
        start = index * self._context
        lengths = (self._sizes - start).clip(0, self._context)
        longest = int(lengths.max())
        inputs, targets = _token_windows(self._tokens, self._starts + start, longest)
        fresh = torch.full((self.rows,), index == 0)
        if (lengths == longest).all():
            return TokenBatch(inputs, targets, fresh)
        padding = torch.arange(longest) >= torch.from_numpy(lengths)[:, None]
        return TokenBatch(
            inputs.masked_fill(padding.view(*padding.shape, *(1,) * (inputs.dim() - 2)), 0),
            targets.masked_fill(padding, 0),
            fresh,
            torch.from_numpy(lengths),
        )


def _count_units(tokens: int, unit: int, context: int) -> tuple[int, int]:
    """Return the number of target units in an epoch, and the slack: by how many tokens the start can move.

    If possible, the slack is at least context - 1, so that chunks can begin anywhere.
    """
    count = max(1, (tokens - context) // unit)
    return count, tokens - 1 - count * unit


def _token_windows(tokens: TokenRows, starts: TokenIndices, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the inputs and the targets (rows, length) of windows that begin at `starts`."""
    indices = starts[:, None] + np.arange(length + 1)
    rows = torch.from_numpy(tokens[indices.clip(max=len(tokens) - 1)].astype(np.int64))
    return rows[:, :-1], rows[:, 1:] if rows.dim() == 2 else rows[:, 1:, 0]


def _check_length(tokens: TokenRows, context: int) -> None:
    if len(tokens) <= context:
        smaller = f", or set data.context_length={len(tokens) // 2}" if len(tokens) > 1 else ""
        raise UserError(
            f"the training text has {len(tokens)} tokens, and data.context_length={context} needs at least "
            f"{context + 1}: give more text{smaller}"
        )


def _check_index(index: int, per_epoch: int) -> None:
    if not 0 <= index < per_epoch:
        raise IndexError(f"batch {index} of an epoch of {per_epoch}")
