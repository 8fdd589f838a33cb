"""`foveal generate` with a masked language model: what stands in the gaps of a text."""

import sys
from typing import Any

import numpy as np

from foveal.core.errors import UserError
from foveal.data.core.examples import Examples, RaggedArray
from foveal.data.core.length_buckets import BucketedEvalBatches
from foveal.data.text.masked_lm_batches import MASK_PLACEHOLDER, encode_with_masks
from foveal.data.text.special_tokens import SpecialTokens
from foveal.data.text.tokenizers import TokenIds, Tokenizer
from foveal.objectives.masked_lm import MaskedLMObjective
from foveal.tasks.session import LoadedRun
from foveal.ui.console import print_json

TokenProbability = tuple[int, float]
"""A token, and its probability."""


def fill_gaps(loaded: LoadedRun, texts: list[str], best: int, json: bool) -> None:
    """Print each text with the likeliest token in each gap, and if more than one are wanted the `best` of
    each gap. Each gap is guessed by itself: the others are still gaps to the model."""
    tokenizer: Tokenizer = loaded.processor
    sources = [_encode_source(loaded, number, text) for number, text in enumerate(texts, 1)]
    found = _predict_gaps(loaded, sources, best)
    filled = [_fill_text(tokenizer, *pair) for pair in zip(sources, found, strict=True)]
    if json:
        print_json({"run": str(loaded.run.path), "samples": _samples_json(tokenizer, texts, filled, found)})
        return
    for text, gaps in zip(filled, found, strict=True):
        sys.stdout.write(f"{' '.join(text.split())}\n")
        for number, guesses in enumerate(gaps if best > 1 else (), 1):
            told = ", ".join(f"{tokenizer.decode([token])!r} {chance:.3f}" for token, chance in guesses)
            sys.stdout.write(f"    gap {number}: {told}\n")


def _encode_source(loaded: LoadedRun, number: int, text: str) -> TokenIds:
    """The tokens of a text that has a gap, and is no longer than what the model reads."""
    if MASK_PLACEHOLDER not in text:
        raise UserError(f"text {number} has no gap: write {MASK_PLACEHOLDER} where a token is to be guessed")
    tokens, limit = encode_with_masks(text, loaded.processor), loaded.model.encoder.limit
    if limit is not None and len(tokens) > limit:
        raise UserError(f"text {number} has {len(tokens)} tokens, the model reads at most {limit}: cut it")
    return tokens


def _predict_gaps(
    loaded: LoadedRun, sources: list[TokenIds], best: int
) -> list[list[list[TokenProbability]]]:
    """Of each gap of each source the `best` likeliest tokens, which are no marks."""
    task: MaskedLMObjective = loaded.task
    size = loaded.processor.size
    hidden = [(row == SpecialTokens(size).mask).astype(np.int64) for row in sources]
    examples = Examples({"source": RaggedArray.from_rows(sources), "hidden": RaggedArray.from_rows(hidden)})
    order = BucketedEvalBatches(examples, loaded.config.data.batch_tokens)
    found: list[list[list[TokenProbability]]] = [[]] * len(sources)
    for index in range(order.per_epoch):
        batch = order.batch(0, index)
        likeliest = task.predict_batch(batch)[:, :size].topk(min(best, size))
        pairs = zip(likeliest.indices.tolist(), likeliest.values.tolist(), strict=True)
        gaps = iter([list(zip(*pair, strict=True)) for pair in pairs])
        for row, count in zip(batch.rows.tolist(), batch.columns["hidden"].sum(1).tolist(), strict=True):
            found[row] = [next(gaps) for _ in range(count)]
    return found


def _fill_text(tokenizer: Tokenizer, source: TokenIds, gaps: list[list[TokenProbability]]) -> str:
    """The text with the likeliest token of each gap put in."""
    tokens = source.copy()
    tokens[source == SpecialTokens(tokenizer.size).mask] = [guesses[0][0] for guesses in gaps]
    return tokenizer.decode(tokens[tokens < tokenizer.size]).strip()


def _samples_json(
    tokenizer: Tokenizer, texts: list[str], filled: list[str], predictions: list[list[list[TokenProbability]]]
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
        for prompt, text, gaps in zip(texts, filled, predictions, strict=True)
    ]
