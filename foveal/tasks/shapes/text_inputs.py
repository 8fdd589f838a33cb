"""The inputs of a language model that views look at: windows of a text, and typed texts."""

from typing import Any

import numpy as np
from torch import from_numpy

from foveal.core.errors import UserError
from foveal.data.core.batching import TokenBatch
from foveal.data.text.special_tokens import token_names
from foveal.data.text.token_store import TokenArray
from foveal.data.text.unknown_tokens import check_known_sources
from foveal.inspection.chosen_input import ChosenInput


def count_windows(tokens: TokenArray, context: int) -> int:
    """Return the number of windows of a text; the last may be shorter."""
    return -(-(len(tokens) - 1) // context)


def window_of_text(task: Any, tokens: TokenArray, row: int) -> ChosenInput:
    """Return window `row` of a text as the input of a language model, without the text before."""
    context = task.config.data.context_length
    window = from_numpy(tokens[row * context : (row + 1) * context + 1].astype(np.int64))[None]
    batch = TokenBatch(window[:, :-1], window[:, 1:])
    return _input(task, batch, task.processor.decode(window[0, 1:].tolist()))


def typed_text(task: Any, text: str) -> ChosenInput:
    """Return a text as the input of a language model.

    The last target, which is unknown, is the token that the model finds likeliest.

    Raises: UserError: the text is too long, or most of its characters are unknown.
    """
    check_known_sources("--text", task.processor, [text])
    tokens, limit = from_numpy(task.processor.encode_known(text)[0])[None], task.model.limit
    if limit is not None and tokens.shape[1] > limit:
        raise UserError(f"--text has {tokens.shape[1]} tokens, the model reads at most {limit}: cut it")
    batch = TokenBatch(tokens, tokens.roll(-1, 1))
    return _input(task, task.objective().with_own_answer(batch), None)


def _input(task: Any, batch: TokenBatch, reference: str | None) -> ChosenInput:
    source, target = (token_names(each[0].tolist(), task.processor) for each in (batch.inputs, batch.targets))
    return ChosenInput(batch, source, target, task.objective(), reference)
