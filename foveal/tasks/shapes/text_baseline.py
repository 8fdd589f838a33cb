"""Baselines of tasks that write a text: a text of training for all sources, or of the nearest one."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from foveal.data.pairs.source import Source
from foveal.ops.ngrams import ngram_codes, ngram_vocabulary, stack_term_weights
from foveal.tasks.shapes.label_baseline import MAX_BASELINE_ROWS, fitted_rows

LONGEST_NGRAM, MAX_NGRAMS = 3, 4096
"""The longest n-gram of characters by which texts are compared, and the number of different n-grams."""
CHUNK_ROWS = 4096
"""Held-out rows whose features are in memory together."""


def text_answers(
    source: Source[Any], train: Any, held_out: Any, seed: int
) -> Iterator[tuple[str, list[str]]]:
    """Yield simple methods in words, each with its texts for the held-out rows."""
    rows = fitted_rows(train, seed)
    texts = [train.references[row] for row in rows]
    frequent, count = Counter(train.references).most_common(1)[0]
    if count > 1:
        yield "the most frequent text of training", [frequent] * len(held_out)
    yield "the most typical text of training", [typical_text(texts)] * len(held_out)
    if source.simple_features_in_words:
        nearest = nearest_rows(source, train.examples.subset(rows), held_out.examples)
        name = f"the text of the nearest training row by {source.simple_features_in_words}"
        yield name, [texts[row] for row in nearest]


def text_memory(source: Source[Any], train_rows: int, held_out_rows: int) -> int:
    """Return the bytes that `text_answers` needs for so many rows: features and their distances."""
    rows, width = min(train_rows, MAX_BASELINE_ROWS), source.max_simple_features
    chunk = min(held_out_rows, CHUNK_ROWS)
    nearest = width * (rows + chunk) + rows * chunk if source.simple_features_in_words else 0
    return 4 * max(MAX_NGRAMS * rows, nearest)


def typical_text(texts: Sequence[str]) -> str:
    """Return the text that is most like all texts: the medoid of their TF-IDF of n-grams of characters."""
    codes = [ngram_codes(torch.tensor([*map(ord, text)], dtype=torch.int64), LONGEST_NGRAM) for text in texts]
    features = stack_term_weights(codes, ngram_vocabulary(codes, MAX_NGRAMS))
    return texts[int((features @ features.mean(0)).argmax())]


def nearest_rows(source: Source[Any], train: Any, held_out: Any) -> list[int]:
    """Return the index of the nearest training source of each held-out source, by their simple features."""
    nearest: list[int] = []
    for start in range(0, len(held_out), CHUNK_ROWS):
        rows = [*range(start, min(start + CHUNK_ROWS, len(held_out)))]
        features = source.simple_features(train, held_out.subset(rows))
        assert features is not None, "the source has simple features in words"
        known, new = features
        nearest += torch.cdist(new, known).argmin(1).tolist()
    return nearest
