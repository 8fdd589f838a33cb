"""BLEU and chrF by sacrebleu, with their signatures (Post 2018).

The value and the score of each sentence are sacrebleu's. A selection of sentences is scored from the counts
of each sentence, by the same equations. Texts are therefore processed only once, however many resamples are
drawn.
"""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from foveal.metrics.score import MetricResult, check_pairs
from foveal.metrics.unicode_scripts import bleu_tokenizer

BLEU_ORDER = 4
"""The longest word n-gram of BLEU."""
CHRF_ORDER, CHRF_BETA = 6, 2
"""The longest character n-gram of chrF, and the weight of recall."""
SCRIPT_SAMPLE = 1000
"""Maximum number of references whose script is examined."""


def bleu(references: Sequence[str], outputs: Sequence[str], tokenize: str | None = None) -> MetricResult:
    """Return BLEU, 0 to 100 (Papineni et al. 2002).

    `per_example` is sentence BLEU, with the n-gram orders that the sentence has. `tokenize` is sacrebleu's:
    "13a" for languages with spaces, "zh" or "char" for those without. By default, the tokenizer is chosen
    from the script of the references.

    Example:

        >>> round(metrics.bleu(["the cat sat on the mat"], ["the cat sat on a mat"]).value, 1)
        53.7
    """
    from sacrebleu.metrics.bleu import BLEU

    check_pairs(references, outputs)
    tokenize = tokenize or bleu_tokenizer(references[:SCRIPT_SAMPLE])
    corpus = BLEU(tokenize=tokenize, force=True)  # without `force`, sacrebleu writes advice to standard error
    sentence_metric = BLEU(tokenize=tokenize, force=True, effective_order=True)
    value = corpus.corpus_score(outputs, [references]).score
    sentence_scores = [
        sentence_metric.sentence_score(output, [reference])
        for output, reference in zip(outputs, references, strict=True)
    ]
    counts = np.array(
        [[score.sys_len, score.ref_len, *score.counts, *score.totals] for score in sentence_scores],
        np.float64,
    )
    return MetricResult(
        "bleu",
        value,
        np.array([score.score for score in sentence_scores]),
        lambda rows: bleu_from_counts(counts[rows].sum(0)),
        signature=str(corpus.get_signature()),
    )


def bleu_if_meaningful(references: Sequence[str], outputs: Sequence[str]) -> MetricResult | None:
    """Return BLEU, or None if no reference has four words: BLEU of such texts is 0 even if all are right."""
    from sacrebleu.metrics.bleu import BLEU

    check_pairs(references, outputs)
    tokenizer = BLEU(tokenize=bleu_tokenizer(references[:SCRIPT_SAMPLE]), force=True).tokenizer
    longest = max(len(tokenizer(reference).split()) for reference in references)
    return bleu(references, outputs) if longest >= BLEU_ORDER else None


def chrf(references: Sequence[str], outputs: Sequence[str]) -> MetricResult:
    """Return chrF2, 0 to 100 (Popović 2015, 2016). chrF needs no word boundaries, so it suits
    every language.

    Example:

        >>> round(metrics.chrf(["the cat sat on the mat"], ["the cat sat on a mat"]).value, 1)
        66.0
    """
    from sacrebleu.metrics.chrf import CHRF

    check_pairs(references, outputs)
    metric = CHRF(char_order=CHRF_ORDER, beta=CHRF_BETA)
    pairs = list(zip(outputs, references, strict=True))
    value = metric.corpus_score(outputs, [references]).score
    sentence_scores = np.array(
        [metric.sentence_score(output, [reference]).score for output, reference in pairs]
    )
    counts = np.array([_character_counts(output, reference) for output, reference in pairs], np.float64)
    return MetricResult(
        "chrf",
        value,
        sentence_scores,
        lambda rows: chrf_from_counts(counts[rows].sum(0)),
        signature=str(metric.get_signature()),
    )


def bleu_from_counts(counts: Float[np.ndarray, "10"]) -> float:
    """Return BLEU from counts: output words, reference words, matched n-grams of 1 to 4, output n-grams of 1
    to 4.

        exp(min(0, 1 - r/w) + (1/4) Σ log p_n)      p_n = matched_n / written_n

    Orders without a match are smoothed: the k-th such order has p_n = 2^-k / written_n (Chen and Cherry 2014,
    method 3).
    """
    written, reference = counts[:2]
    matched, possible = counts[2:6], counts[6:]
    if not matched.any() or not possible.all():
        return 0.0
    missing = matched == 0
    precisions = np.where(missing, 0.5 ** np.cumsum(missing), matched) / possible
    brevity = min(0.0, 1 - reference / written)
    return 100 * math.exp(brevity + np.log(precisions).mean())


def chrf_from_counts(counts: Float[np.ndarray, "3 N"]) -> float:
    """Return chrF, (1 + β²) P R / (β² P + R), from the n-grams in the output, in the reference and in both.

    P and R are means over the orders that both output and reference have.
    """
    written, reference, both = counts[:, (counts[:2] > 0).all(0)]
    if not both.any():
        return 0.0
    precision, recall = (both / written).mean(), (both / reference).mean()
    return float(100 * (1 + CHRF_BETA**2) * precision * recall / (CHRF_BETA**2 * precision + recall))


def _character_counts(output: str, reference: str) -> list[list[int]]:
    """Return (3, CHRF_ORDER) counts of character n-grams: in the output, in the reference, and in both,
    without white space.

    As in sacrebleu, n-grams of the output don't count if the reference has no n-gram of their length.
    """
    sides = ["".join(text.split()) for text in (output, reference)]
    counts = []
    for n in range(1, CHRF_ORDER + 1):
        output_ngrams, reference_ngrams = (
            Counter(side[i : i + n] for i in range(len(side) - n + 1)) for side in sides
        )
        counts.append(
            [
                output_ngrams.total() if reference_ngrams else 0,
                reference_ngrams.total(),
                (output_ngrams & reference_ngrams).total(),
            ]
        )
    return [list(row) for row in zip(*counts, strict=True)]
