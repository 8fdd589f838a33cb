"""Which tokens are in batch `index` of `epoch`: a pure function of (seed, epoch, index).

So seeking costs nothing, and the order depends neither on workers nor on what came before.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from foveal.core.errors import UserError
from foveal.core.runtime import derived_seed
from foveal.data.core.batching import TokenBatch
from foveal.data.core.shuffle import permute_indices
from foveal.data.text.token_store import TokenArray

TokenIndices = NDArray[np.int64]


class StreamBatches:
    """Contiguous streams, for a state that is carried: row r of chunk i + 1 goes on where chunk i ended.

    The text is cut into `rows` equal streams, one behind the other, and each stream into chunks of
    `context` tokens. In epoch 0 the first stream begins with the first token; later epochs begin up to
    `rows * context + context` tokens later, so that chunks end elsewhere. A small text has fewer rows.

    With `micro_batches` > 1 there are as many streams a slot, and batches of the slots take turns:
    micro-batches that are added up in one step, each with a state of its own. `reset_probability` is the
    chance that a row is fresh in the middle of its stream, so that a model does not forget how to begin.
    """

    def __init__(
        self,
        tokens: TokenArray,
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
        self._tokens, self._context, self._seed = tokens, context, seed
        self._micro_batches, self._reset_probability = micro_batches, reset_probability

    def batch(self, epoch: int, index: int) -> TokenBatch:
        """Chunk `index // micro_batches` of a slot's streams (rows, context); `stream_starts` at the first
        of an epoch."""
        _check_index(index, self.per_epoch)
        offset = derived_seed(self._seed, "streams", epoch) % (self._slack + 1) if epoch else 0
        chunk, slot = divmod(index, self._micro_batches)
        streams = slot * self.rows + np.arange(self.rows)
        starts = offset + (streams * self._chunks + chunk) * self._context
        inputs, targets = _token_windows(self._tokens, starts, self._context)
        fresh = np.full(self.rows, chunk == 0)
        if self._reset_probability:
            chance = np.random.default_rng(derived_seed(self._seed, "restart", epoch, index))
            fresh |= chance.random(self.rows) < self._reset_probability
        return TokenBatch(inputs, targets, torch.from_numpy(fresh))


class WindowBatches:
    """Every window of `context` tokens once an epoch, in random order; where windows begin varies too.

    The batches of an epoch are of equal size, or differ by one row where the windows don't divide evenly.
    """

    def __init__(self, tokens: TokenArray, rows: int, context: int, seed: int):
        _check_length(tokens, context)
        self.num_windows, self._slack = _count_units(len(tokens), context, context)
        self.per_epoch = -(-self.num_windows // rows)
        self._tokens, self._context, self._seed = tokens, context, seed

    def batch(self, epoch: int, index: int) -> TokenBatch:
        _check_index(index, self.per_epoch)
        numbers = np.arange(
            index * self.num_windows // self.per_epoch, (index + 1) * self.num_windows // self.per_epoch
        )
        chosen = permute_indices(numbers, self.num_windows, derived_seed(self._seed, "windows", epoch))
        phase = derived_seed(self._seed, "phase", epoch) % (self._slack + 1)
        return TokenBatch(*_token_windows(self._tokens, phase + chosen * self._context, self._context))


class TokenEvalBatches:
    """A whole held-out text: every token but the first is scored exactly once, in contiguous streams.

    Streams differ in length by one token at most; in the last chunk `lengths` says which are shorter
    (0 is possible). A small text has fewer rows, so that each stream is at least one context long.
    """

    def __init__(self, tokens: TokenArray, rows: int, context: int):
        scored = len(tokens) - 1
        if scored < 1:
            raise UserError(
                f"the held-out text has {len(tokens)} token(s), and at least 2 are needed: "
                "give more text, or hold out a larger share (data.valid_fraction, data.test_fraction)"
            )
        self.rows = max(1, min(rows, scored // context))
        ends = np.arange(self.rows + 1) * scored // self.rows
        self._starts, self._sizes = ends[:-1], np.diff(ends)
        self.per_epoch = -(-int(self._sizes.max()) // context)
        self._tokens, self._context = tokens, context

    def batch(self, epoch: int, index: int) -> TokenBatch:
        """Chunk `index` of every stream (rows, at most context); all epochs are alike."""
        _check_index(index, self.per_epoch)
        done = index * self._context
        lengths = (self._sizes - done).clip(0, self._context)
        longest = int(lengths.max())
        inputs, targets = _token_windows(self._tokens, self._starts + done, longest)
        fresh = torch.full((self.rows,), index == 0)
        if (lengths == longest).all():
            return TokenBatch(inputs, targets, fresh)
        padding = torch.arange(longest) >= torch.from_numpy(lengths)[:, None]
        return TokenBatch(
            inputs.masked_fill(padding, 0),
            targets.masked_fill(padding, 0),
            fresh,
            torch.from_numpy(lengths),
        )


def _count_units(tokens: int, unit: int, context: int) -> tuple[int, int]:
    """How many units of targets an epoch has, and how many tokens are left for its first to move.

    Where it can be, the slack is at least context - 1, so that chunks can begin anywhere.
    """
    count = max(1, (tokens - context) // unit)
    return count, tokens - 1 - count * unit


def _token_windows(
    tokens: TokenArray, starts: TokenIndices, length: int
) -> tuple[torch.Tensor, torch.Tensor]:
    places = starts[:, None] + np.arange(length + 1)
    rows = torch.from_numpy(tokens[places.clip(max=len(tokens) - 1)].astype(np.int64))
    return rows[:, :-1], rows[:, 1:]


def _check_length(tokens: TokenArray, context: int) -> None:
    if len(tokens) <= context:
        smaller = f", or set data.context_length={len(tokens) // 2}" if len(tokens) > 1 else ""
        raise UserError(
            f"the training text has {len(tokens)} tokens, and data.context_length={context} needs at least "
            f"{context + 1}: give more text{smaller}"
        )


def _check_index(index: int, per_epoch: int) -> None:
    if not 0 <= index < per_epoch:
        raise IndexError(f"batch {index} of an epoch of {per_epoch}")
