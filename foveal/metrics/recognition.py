"""Word and character error rates by jiwer, and exact match."""

from collections.abc import Callable, Sequence
from typing import Any

from foveal.metrics.score import MetricResult, check_pairs, error_rate, success_rate


def wer(references: Sequence[str], outputs: Sequence[str]) -> MetricResult:
    """Substituted, left out and added words over the words of the references; it can exceed 1."""
    from jiwer import process_words

    return _edits("wer", process_words, references, outputs)


def cer(references: Sequence[str], outputs: Sequence[str]) -> MetricResult:
    """The same in characters, those between words too."""
    from jiwer import process_characters

    return _edits("cer", process_characters, references, outputs)


def exact_match(references: Sequence[str], outputs: Sequence[str]) -> MetricResult:
    """The share of outputs that equal their reference in every character."""
    check_pairs(references, outputs)
    errors = [output != reference for output, reference in zip(outputs, references, strict=True)]
    return success_rate("exact", errors, [1] * len(errors))


def _edits(
    name: str, process: Callable[[str, str], Any], references: Sequence[str], outputs: Sequence[str]
) -> MetricResult:
    check_pairs(references, outputs)
    counts = [_count(process, *pair) for pair in zip(references, outputs, strict=True)]
    errors, totals = zip(*counts, strict=True)
    return error_rate(name, errors, totals)


def _count(process: Callable[[str, str], Any], reference: str, output: str) -> tuple[int, int]:
    """How many edits, and how many units the reference has.

    Some versions of jiwer refuse an empty reference. What it takes to write the output from nothing is
    what it takes to leave all of it out.
    """
    if not reference.strip():
        return (process(output, "").deletions, 0) if output.strip() else (0, 0)
    found = process(reference, output)
    kept = found.hits + found.substitutions + found.deletions
    return found.substitutions + found.deletions + found.insertions, kept
