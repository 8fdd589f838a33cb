"""CIDEr-D: how similar a caption is to human captions of the same image.

(Vedantam, Lawrence Zitnick and Parikh 2015, section 4.) The variant D is harder to game.
"""

import math
import unicodedata
from collections import Counter
from collections.abc import Sequence

import numpy as np

from foveal.metrics.score import MetricResult, RowIndices, check_pairs

MAX_NGRAM, SIGMA = 4, 6.0
"""The longest n-gram, and the standard deviation of the length penalty in words."""
NGram = tuple[str, ...]


def caption_words(text: str) -> list[str]:
    """Return the words of a caption in lower case.

    Every character except letters, digits and their combining marks separates words, and is removed. The
    original uses Stanford's PTBTokenizer, which removes most punctuation too.

    Example:

        >>> metrics.caption_words("A dog, running!")
        ['a', 'dog', 'running']
    """
    characters = (
        character if unicodedata.category(character)[0] in "LNM" else " " for character in text.lower()
    )
    return "".join(characters).split()


def cider(references: Sequence[Sequence[list[str]]], outputs: Sequence[list[str]]) -> MetricResult:
    """Return CIDEr-D (0 to 10) of tokenized outputs c, each with tokenized references s_1 .. s_m.

        10/m Σ_j exp(-(l(c) - l(s_j))² / 2σ²) mean_n min(g(c), g(s_j)) · g(s_j) / (|g(c)| |g(s_j)|)

    g is the vector of TF-IDF weights of n-grams: the count of an n-gram in the caption, times log(I / d),
    where d of the I examples have the n-gram in a reference (1 if there is none). n is 1 to 4, and l counts
    words. As in the authors' program, the term frequency is the count, not the relative frequency of equation
    1. The two are equivalent only under a plain cosine.

    Document frequencies are computed over all examples. `per_example` and `on_rows` use the weights of the
    whole set.

    Example:

        >>> outputs = ["a dog runs on grass", "two men play chess"]
        >>> references = [["a dog runs on the grass", "a dog is running"], ["two men play chess outside"]]
        >>> words = [[metrics.caption_words(text) for text in texts] for texts in references]
        >>> round(metrics.cider(words, [metrics.caption_words(text) for text in outputs]).value, 1)
        6.1

    Raises: UserError: there are no examples.
    Raises: ValueError: the numbers of outputs and references differ, or an output has no reference.
    """
    check_pairs(references, outputs)
    if not all(references):
        raise ValueError("an output has no reference")
    reference_counts = [
        [_counts(reference) for reference in references_of_row] for references_of_row in references
    ]
    document_counts = Counter(
        gram for references_of_row in reference_counts for gram in _ngrams(references_of_row)
    )
    rarity = {gram: math.log(len(outputs) / examples) for gram, examples in document_counts.items()}
    max_rarity = math.log(len(outputs))

    def weights(caption: list[Counter[NGram]]) -> list[dict[NGram, float]]:
        return [{gram: h * rarity.get(gram, max_rarity) for gram, h in counts.items()} for counts in caption]

    def score(output: list[str], references_of_row: list[list[Counter[NGram]]]) -> float:
        output_weights, total = weights(_counts(output)), 0.0
        for reference in references_of_row:
            length_difference = len(output) - reference[0].total()
            cosines = map(_clipped_cosine, output_weights, weights(reference))
            total += math.exp(-(length_difference**2) / (2 * SIGMA**2)) * sum(cosines) / MAX_NGRAM
        return 10 * total / len(references_of_row)

    scores = np.array([score(*example) for example in zip(outputs, reference_counts, strict=True)])

    def mean_of(rows: RowIndices) -> float:
        return float(scores[rows].mean())

    sizes = {len(references_of_row) for references_of_row in references}
    number = sizes.pop() if len(sizes) == 1 else "var"
    signature = f"nrefs:{number}|n:{MAX_NGRAM}|sigma:{SIGMA:g}|documents:{len(outputs)}"
    return MetricResult("cider", float(scores.mean()), scores, mean_of, signature=signature)


def _counts(tokens: list[str]) -> list[Counter[NGram]]:
    """Return the count of each n-gram in a caption, for each n."""
    return [
        Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)) for n in range(1, MAX_NGRAM + 1)
    ]


def _ngrams(captions: list[list[Counter[NGram]]]) -> set[NGram]:
    """Return all n-grams of some captions."""
    return {gram for caption in captions for counts in caption for gram in counts}


def _clipped_cosine(output: dict[NGram, float], reference: dict[NGram, float]) -> float:
    """Return the cosine with counts clipped to the reference's.

    N-grams that the output repeats beyond the reference add only to the output's norm.
    """
    product = sum(min(output[gram], weight) * weight for gram, weight in reference.items() if gram in output)
    norms = math.hypot(*output.values()) * math.hypot(*reference.values())
    return product / norms if norms else 0.0
