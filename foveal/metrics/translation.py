"""BLEU and chrF by sacrebleu, with their signatures (Post 2018).

The value and the score of each sentence are sacrebleu's own. A selection of sentences is scored from the
counts of each, by the same equations: text is read once, however often examples are drawn again.
"""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from foveal.data.text.unicode_scripts import bleu_tokenizer
from foveal.metrics.score import MetricResult, check_pairs

CHRF_ORDER, CHRF_BETA = 6, 2
"""chrF's longest character n-gram, and how much recall weighs."""
SCRIPT_SAMPLE = 1000
"""References whose script is looked at."""


def bleu(references: Sequence[str], outputs: Sequence[str], tokenize: str | None = None) -> MetricResult:
    """BLEU in 0 to 100 (Papineni et al. 2002). `per_example`: sentence BLEU of the n-grams a sentence has.

    `tokenize` is sacrebleu's: "13a" for languages with spaces, "zh" or "char" for those without, which is
    seen from the references where nothing is said.
    """
    from sacrebleu.metrics.bleu import BLEU

    check_pairs(references, outputs)
    tokenize = tokenize or bleu_tokenizer(references[:SCRIPT_SAMPLE])
    corpus = BLEU(tokenize=tokenize, force=True)  # unforced, it writes advice to standard error
    alone = BLEU(tokenize=tokenize, force=True, effective_order=True)
    value = corpus.corpus_score(outputs, [references]).score
    each = [
        alone.sentence_score(out, [reference]) for out, reference in zip(outputs, references, strict=True)
    ]
    counts = np.array([[one.sys_len, one.ref_len, *one.counts, *one.totals] for one in each], np.float64)
    return MetricResult(
        "bleu",
        value,
        np.array([one.score for one in each]),
        lambda rows: bleu_from_counts(counts[rows].sum(0)),
        signature=str(corpus.get_signature()),
    )


def chrf(references: Sequence[str], outputs: Sequence[str]) -> MetricResult:
    """chrF2 in 0 to 100 (Popović 2015, 2016): needs no words, so it suits every language."""
    from sacrebleu.metrics.chrf import CHRF

    check_pairs(references, outputs)
    metric = CHRF(char_order=CHRF_ORDER, beta=CHRF_BETA)
    pairs = list(zip(outputs, references, strict=True))
    value = metric.corpus_score(outputs, [references]).score
    each = np.array([metric.sentence_score(output, [reference]).score for output, reference in pairs])
    counts = np.array([_character_counts(output, reference) for output, reference in pairs], np.float64)
    return MetricResult(
        "chrf",
        value,
        each,
        lambda rows: chrf_from_counts(counts[rows].sum(0)),
        signature=str(metric.get_signature()),
    )


def bleu_from_counts(counts: Float[np.ndarray, "10"]) -> float:
    """BLEU from counts: words written, words in the reference, matched n-grams of 1 to 4, written ones.

        exp(min(0, 1 - r/w) + (1/4) Σ log p_n)      p_n = matched_n / written_n

    The k-th order without a match gets p_n = 2^-k / written_n (Chen and Cherry 2014, method 3).
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
    """chrF from the n-grams written, in the reference and in both: (1 + β²) P R / (β² P + R).

    P and R are means over the orders that output and reference have.
    """
    written, reference, both = counts[:, (counts[:2] > 0).all(0)]
    if not both.any():
        return 0.0
    precision, recall = (both / written).mean(), (both / reference).mean()
    return float(100 * (1 + CHRF_BETA**2) * precision * recall / (CHRF_BETA**2 * precision + recall))


def _character_counts(output: str, reference: str) -> list[list[int]]:
    """(3, CHRF_ORDER): character n-grams of the output, of the reference, and of both, without white space.

    As in sacrebleu, an output's n-grams don't count where the reference has none of their length.
    """
    sides = ["".join(text.split()) for text in (output, reference)]
    counts = []
    for n in range(1, CHRF_ORDER + 1):
        ours, theirs = (Counter(side[i : i + n] for i in range(len(side) - n + 1)) for side in sides)
        counts.append([ours.total() if theirs else 0, theirs.total(), (ours & theirs).total()])
    return [list(row) for row in zip(*counts, strict=True)]
