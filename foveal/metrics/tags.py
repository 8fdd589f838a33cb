"""Metrics for a tag per word: accuracy and macro F1 over words, and F1 over entities (nervaluate's strict
counts)."""

import re
from collections.abc import Iterable, Sequence

import numpy as np

from foveal.core.errors import UserError
from foveal.metrics.score import MetricResult, RowIndices, check_pairs, success_rate

EntitySpan = tuple[str, int, int]
"""An entity: its type, its first word and its last word."""
ENTITY_TAG = re.compile(r"O|[BIES]-.+", re.DOTALL)


def tag_accuracy(references: Sequence[Sequence[str]], outputs: Sequence[Sequence[str]]) -> MetricResult:
    """Return the fraction of words with the correct tag. An example is a sentence.

    Example:

        >>> metrics.tag_accuracy([["DET", "NOUN"]], [["DET", "VERB"]]).value
        0.5
    """
    _check_sentences(references, outputs)
    pairs = list(zip(references, outputs, strict=True))
    errors = [sum(a != b for a, b in zip(gold, predicted, strict=True)) for gold, predicted in pairs]
    return success_rate("accuracy", errors, [len(gold) for gold in references])


def tag_macro_f1(references: Sequence[Sequence[str]], outputs: Sequence[Sequence[str]]) -> MetricResult:
    """Return the mean F1 of the tags over words, all tags with equal weight.

    `per_example` is the fraction of correct words in a sentence. The tags of a selection are those that occur
    in its references or outputs.

    Example:

        >>> metrics.tag_macro_f1([["DET", "NOUN"]], [["DET", "VERB"]]).value
        0.3333333333333333
    """
    _check_sentences(references, outputs)
    names = sorted({tag for side in (references, outputs) for tags in side for tag in tags})
    ids = {name: i for i, name in enumerate(names)}
    correct_counts, total_counts = np.zeros((2, len(references), len(names)), np.int64)
    for row, sides in enumerate(zip(references, outputs, strict=True)):
        gold, predicted = (np.array([ids[tag] for tag in tags], np.int64) for tags in sides)
        correct_counts[row] = np.bincount(gold[gold == predicted], minlength=len(names))
        total_counts[row] = np.bincount(np.concatenate([gold, predicted]), minlength=len(names))

    def mean_f1(rows: RowIndices) -> float:
        correct, total = correct_counts[rows].sum(0), total_counts[rows].sum(0)
        f1 = 2 * correct[total > 0] / total[total > 0]
        return float(f1.mean()) if len(f1) else 1.0

    all_rows = np.arange(len(references))
    per_sentence = 2 * correct_counts.sum(1) / total_counts.sum(1).clip(1)
    return MetricResult("macro_f1", mean_f1(all_rows), per_sentence, mean_f1)


def entity_f1(references: Sequence[Sequence[str]], outputs: Sequence[Sequence[str]]) -> MetricResult:
    """Return F1 over entities in BIO or BIOES tags. An entity is correct if its type and both its bounds are
    correct.

    `per_example` is a sentence's F1, or 1 for a sentence with neither reference nor predicted entities.

    Example:

        >>> metrics.entity_f1([["B-PER", "I-PER", "O"]], [["B-PER", "I-PER", "B-LOC"]]).value
        0.6666666666666666
    """
    from nervaluate.entities import Entity
    from nervaluate.strategies import StrictEvaluation

    _check_sentences(references, outputs)
    strict = StrictEvaluation()
    errors, totals = [], []
    for gold, predicted in zip(references, outputs, strict=True):
        sides = [[Entity(*span) for span in entity_spans(tags)] for tags in (gold, predicted)]
        result, _ = strict.evaluate(*sides, tags=[])
        totals.append(result.possible + result.actual)
        errors.append(result.possible + result.actual - 2 * result.correct)
    return success_rate("entity_f1", errors, totals)


def are_entity_tags(tags: Iterable[str]) -> bool:
    """Return whether the tags mark entities: each is O, or a type with B-, I-, E- or S-, and at least one is
    not O."""
    distinct_tags = set(tags)
    return distinct_tags - {"O"} != set() and all(ENTITY_TAG.fullmatch(tag) for tag in distinct_tags)


def entity_spans(tags: Sequence[str]) -> list[EntitySpan]:
    """Return the entities of a sentence, in order.

    Malformed tags are read as in conlleval (Tjong Kim Sang and Buchholz 2000). An I- or E- that does not
    continue an entity of the same type begins a new entity. An entity without E- ends where it is not
    continued.

    Example:

        >>> metrics.entity_spans(["B-PER", "I-PER", "O", "B-LOC"])
        [('PER', 0, 1), ('LOC', 3, 3)]

    Raises: UserError: a tag has another form.
    """
    spans: list[EntitySpan] = []
    previous = "O"
    for index, tag in enumerate(tags):
        if not ENTITY_TAG.fullmatch(tag):
            raise UserError(f"the tag {tag!r} marks no entity: use O, or B-, I-, E- or S- and a type")
        prefix, _, label = tag.partition("-")
        continued = prefix in "IE" and previous[0] in "BI" and previous[2:] == label
        if continued:
            spans[-1] = (label, spans[-1][1], index)
        elif prefix != "O":
            spans.append((label, index, index))
        previous = tag
    return spans


def _check_sentences(references: Sequence[Sequence[str]], outputs: Sequence[Sequence[str]]) -> None:
    """Check that references and outputs have the same sentences and words."""
    check_pairs(references, outputs)
    for number, (gold, predicted) in enumerate(zip(references, outputs, strict=True), 1):
        if len(gold) != len(predicted):
            raise ValueError(f"sentence {number} has {len(gold)} words and {len(predicted)} tags")
