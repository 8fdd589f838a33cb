"""Word and character error rates by jiwer, and exact match."""

from collections.abc import Callable, Sequence
from typing import Any

from foveal.metrics.score import MetricResult, check_pairs, error_rate, success_rate


def wer(references: Sequence[str], outputs: Sequence[str]) -> MetricResult:
    """Return the word error rate: substituted, deleted and inserted words over the reference words. It can
    exceed 1.

    Example:

        >>> metrics.wer(["the cat sat"], ["the cat"]).value
        0.3333333333333333
    """
    from jiwer import process_words

    return _edits("wer", process_words, references, outputs)


def cer(references: Sequence[str], outputs: Sequence[str]) -> MetricResult:
    """Return the character error rate: as `wer`, in characters, including the spaces between words.

    Example:

        >>> metrics.cer(["the cat"], ["the car"]).value
        0.14285714285714285
    """
    from jiwer import process_characters

    return _edits("cer", process_characters, references, outputs)


def exact_match(references: Sequence[str], outputs: Sequence[str]) -> MetricResult:
    """Return the fraction of outputs that equal their reference in every character.

    Example:

        >>> metrics.exact_match(["the cat", "a dog"], ["the cat", "a dog."]).value
        0.5
    """
    check_pairs(references, outputs)
    errors = [output != reference for output, reference in zip(outputs, references, strict=True)]
    return success_rate("exact", errors, [1] * len(errors))


def _edits(
    name: str, process: Callable[[str, str], Any], references: Sequence[str], outputs: Sequence[str]
) -> MetricResult:
    """Return the error rate with edits counted by `process`."""
    check_pairs(references, outputs)
    counts = [_count(process, *pair) for pair in zip(references, outputs, strict=True)]
    errors, totals = zip(*counts, strict=True)
    return error_rate(name, errors, totals)


def _count(process: Callable[[str, str], Any], reference: str, output: str) -> tuple[int, int]:
    """Return the number of edits, and the number of units in the reference.

    Some versions of jiwer reject an empty reference. The number of insertions is then computed as the number
    of deletions in the opposite direction.
    """
    if not reference.strip():
        return (process(output, "").deletions, 0) if output.strip() else (0, 0)
    alignment = process(reference, output)
    reference_units = alignment.hits + alignment.substitutions + alignment.deletions
    return alignment.substitutions + alignment.deletions + alignment.insertions, reference_units
