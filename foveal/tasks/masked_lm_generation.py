"""`foveal generate` with a masked language model: what stands in the gaps of a text."""

import sys
from typing import Any

import numpy as np

from foveal.core.errors import UserError
from foveal.data.core.examples import Examples, Ragged
from foveal.data.core.length_buckets import HeldOutExamples
from foveal.data.text.masked_lm_batches import GAP, with_gaps
from foveal.data.text.special_tokens import Marks
from foveal.data.text.tokenizers import Ids, Tokenizer
from foveal.objectives.masked_lm import MaskedTask
from foveal.tasks.session import Loaded
from foveal.ui.console import result_line

Guess = tuple[int, float]
"""A token, and its probability."""


def fill_gaps(loaded: Loaded, texts: list[str], best: int, json: bool) -> None:
    """Print each text with the likeliest token in each gap, and if more than one are wanted the `best` of
    each gap. Each gap is guessed by itself: the others are still gaps to the model."""
    tokenizer: Tokenizer = loaded.inputs
    sources = [_source(loaded, number, text) for number, text in enumerate(texts, 1)]
    found = _guesses(loaded, sources, best)
    filled = [_filled(tokenizer, *pair) for pair in zip(sources, found, strict=True)]
    if json:
        result_line({"run": str(loaded.run.path), "samples": _samples(tokenizer, texts, filled, found)})
        return
    for text, gaps in zip(filled, found, strict=True):
        sys.stdout.write(f"{' '.join(text.split())}\n")
        for number, guesses in enumerate(gaps if best > 1 else (), 1):
            told = ", ".join(f"{tokenizer.decode([token])!r} {chance:.3f}" for token, chance in guesses)
            sys.stdout.write(f"    gap {number}: {told}\n")


def _source(loaded: Loaded, number: int, text: str) -> Ids:
    """The tokens of a text that has a gap, and is no longer than what the model reads."""
    if GAP not in text:
        raise UserError(f"text {number} has no gap: write {GAP} where a token is to be guessed")
    tokens, limit = with_gaps(text, loaded.inputs), loaded.model.encoder.limit
    if limit is not None and len(tokens) > limit:
        raise UserError(f"text {number} has {len(tokens)} tokens, the model reads at most {limit}: cut it")
    return tokens


def _guesses(loaded: Loaded, sources: list[Ids], best: int) -> list[list[list[Guess]]]:
    """Of each gap of each source the `best` likeliest tokens, which are no marks."""
    task: MaskedTask = loaded.task
    size = loaded.inputs.size
    hidden = [(row == Marks(size).mask).astype(np.int64) for row in sources]
    examples = Examples({"source": Ragged.from_rows(sources), "hidden": Ragged.from_rows(hidden)})
    order = HeldOutExamples(examples, loaded.config.data.batch_tokens)
    found: list[list[list[Guess]]] = [[]] * len(sources)
    for index in range(order.per_epoch):
        batch = order.batch(0, index)
        likeliest = task.predict(batch)[:, :size].topk(min(best, size))
        pairs = zip(likeliest.indices.tolist(), likeliest.values.tolist(), strict=True)
        gaps = iter([list(zip(*pair, strict=True)) for pair in pairs])
        for row, count in zip(batch.rows.tolist(), batch.columns["hidden"].sum(1).tolist(), strict=True):
            found[row] = [next(gaps) for _ in range(count)]
    return found


def _filled(tokenizer: Tokenizer, source: Ids, gaps: list[list[Guess]]) -> str:
    """The text with the likeliest token of each gap put in."""
    tokens = source.copy()
    tokens[source == Marks(tokenizer.size).mask] = [guesses[0][0] for guesses in gaps]
    return tokenizer.decode(tokens[tokens < tokenizer.size]).strip()


def _samples(
    tokenizer: Tokenizer, texts: list[str], filled: list[str], found: list[list[list[Guess]]]
) -> list[dict[str, Any]]:
    return [
        {
            "prompt": prompt,
            "text": text,
            "gaps": [
                [{"text": tokenizer.decode([token]), "probability": chance} for token, chance in guesses]
                for guesses in gaps
            ],
        }
        for prompt, text, gaps in zip(texts, filled, found, strict=True)
    ]
