"""CIDEr-D: how much a caption is like what people wrote of the same picture.

Vedantam, Lawrence Zitnick and Parikh 2015, section 4, in the variant D, which is harder to fool.
"""

import math
import unicodedata
from collections import Counter
from collections.abc import Sequence

import numpy as np

from foveal.metrics.score import MetricResult, RowIndices, check_pairs

MAX_NGRAM, SIGMA = 4, 6.0
"""The longest n-gram, and the deviation of the penalty in words."""
NGram = tuple[str, ...]


def caption_words(text: str) -> list[str]:
    """In lower case. All but letters, digits and their marks parts words, and is left out.

    The original asks Stanford's PTBTokenizer, and leaves most punctuation out too.
    """
    kept = (sign if unicodedata.category(sign)[0] in "LNM" else " " for sign in text.lower())
    return "".join(kept).split()


def cider(references: Sequence[Sequence[list[str]]], outputs: Sequence[list[str]]) -> MetricResult:
    """CIDEr-D in 0 to 10 of outputs c, each with references s_1 .. s_m; all of them are tokens.

        10/m Σ_j exp(-(l(c) - l(s_j))² / 2σ²) mean_n min(g(c), g(s_j)) · g(s_j) / (|g(c)| |g(s_j)|)

    g has an entry for each n-gram: how often it is in the caption, times log(I / d), where d of the I
    examples have it in a reference (1 for none). n is 1 to 4, l counts words. As in the authors' program,
    an entry begins with a count, not with a share as in equation 1: only under a cosine are they the same.

    How rare an n-gram is, all examples say together: `per_example` and `on_rows` keep the weights of the
    whole set.

    Errors: UserError where there is nothing to score, ValueError for unequal numbers or no reference.
    """
    check_pairs(references, outputs)
    if not all(references):
        raise ValueError("an output has no reference")
    known = [[_counts(one) for one in several] for several in references]
    found = Counter(gram for several in known for gram in _ngrams(several))
    rarity = {gram: math.log(len(outputs) / examples) for gram, examples in found.items()}
    unseen = math.log(len(outputs))

    def weights(caption: list[Counter[NGram]]) -> list[dict[NGram, float]]:
        return [{gram: h * rarity.get(gram, unseen) for gram, h in counts.items()} for counts in caption]

    def score(output: list[str], several: list[list[Counter[NGram]]]) -> float:
        ours, total = weights(_counts(output)), 0.0
        for reference in several:
            apart = len(output) - reference[0].total()
            cosines = map(_clipped_cosine, ours, weights(reference))
            total += math.exp(-(apart**2) / (2 * SIGMA**2)) * sum(cosines) / MAX_NGRAM
        return 10 * total / len(several)

    each = np.array([score(*example) for example in zip(outputs, known, strict=True)])

    def of(rows: RowIndices) -> float:
        return float(each[rows].mean())

    sizes = {len(several) for several in references}
    number = sizes.pop() if len(sizes) == 1 else "var"
    signature = f"nrefs:{number}|n:{MAX_NGRAM}|sigma:{SIGMA:g}|documents:{len(outputs)}"
    return MetricResult("cider", float(each.mean()), each, of, signature=signature)


def _counts(tokens: list[str]) -> list[Counter[NGram]]:
    """How often a caption has each of its n-grams, by n."""
    return [
        Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)) for n in range(1, MAX_NGRAM + 1)
    ]


def _ngrams(captions: list[list[Counter[NGram]]]) -> set[NGram]:
    return {gram for caption in captions for counts in caption for gram in counts}


def _clipped_cosine(output: dict[NGram, float], reference: dict[NGram, float]) -> float:
    """What an output repeats beyond its reference adds to its norm alone."""
    both = sum(min(output[gram], weight) * weight for gram, weight in reference.items() if gram in output)
    norms = math.hypot(*output.values()) * math.hypot(*reference.values())
    return both / norms if norms else 0.0
