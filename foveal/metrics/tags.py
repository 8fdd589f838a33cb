"""Scores of a tag a word: accuracy and macro F1 over words, F1 over entities (nervaluate's strict counts)."""

import re
from collections.abc import Iterable, Sequence

import numpy as np

from foveal.core.errors import UserError
from foveal.metrics.score import MetricResult, RowIndices, check_pairs, success_rate

EntitySpan = tuple[str, int, int]
"""An entity: its type, its first word and its last."""
ENTITY_TAG = re.compile(r"O|[BIES]-.+", re.DOTALL)


def tag_accuracy(references: Sequence[Sequence[str]], outputs: Sequence[Sequence[str]]) -> MetricResult:
    """The share of words with the right tag. An example is a sentence."""
    _check_sentences(references, outputs)
    pairs = list(zip(references, outputs, strict=True))
    errors = [sum(a != b for a, b in zip(gold, found, strict=True)) for gold, found in pairs]
    return success_rate("accuracy", errors, [len(gold) for gold in references])


def tag_macro_f1(references: Sequence[Sequence[str]], outputs: Sequence[Sequence[str]]) -> MetricResult:
    """The mean of the tags' F1 over words, each tag counting alike. `per_example`: the share of right words.

    The tags of a selection are those that it has, or that its outputs name.
    """
    _check_sentences(references, outputs)
    names = sorted({tag for side in (references, outputs) for tags in side for tag in tags})
    number = {name: i for i, name in enumerate(names)}
    right, both = np.zeros((2, len(references), len(names)), np.int64)
    for row, sides in enumerate(zip(references, outputs, strict=True)):
        gold, found = (np.array([number[tag] for tag in tags], np.int64) for tags in sides)
        right[row] = np.bincount(gold[gold == found], minlength=len(names))
        both[row] = np.bincount(np.concatenate([gold, found]), minlength=len(names))

    def of(rows: RowIndices) -> float:
        shared, there = right[rows].sum(0), both[rows].sum(0)
        f1 = 2 * shared[there > 0] / there[there > 0]
        return float(f1.mean()) if len(f1) else 1.0

    every = np.arange(len(references))
    each = 2 * right.sum(1) / both.sum(1).clip(1)
    return MetricResult("macro_f1", of(every), each, of)


def entity_f1(references: Sequence[Sequence[str]], outputs: Sequence[Sequence[str]]) -> MetricResult:
    """F1 over entities in BIO or BIOES tags; one is found if its type, first and last word are right.

    `per_example`: a sentence's F1, 1 where there is nothing to find and nothing was found.
    """
    from nervaluate.entities import Entity
    from nervaluate.strategies import StrictEvaluation

    _check_sentences(references, outputs)
    strict = StrictEvaluation()
    errors, totals = [], []
    for gold, found in zip(references, outputs, strict=True):
        sides = [[Entity(*span) for span in entity_spans(tags)] for tags in (gold, found)]
        result, _ = strict.evaluate(*sides, tags=[])
        totals.append(result.possible + result.actual)
        errors.append(result.possible + result.actual - 2 * result.correct)
    return success_rate("entity_f1", errors, totals)


def are_entity_tags(tags: Iterable[str]) -> bool:
    """Whether these tags mark entities: all are O, B-, I-, E- or S- and a type, and one is not O."""
    kinds = set(tags)
    return kinds - {"O"} != set() and all(ENTITY_TAG.fullmatch(tag) for tag in kinds)


def entity_spans(tags: Sequence[str]) -> list[EntitySpan]:
    """The entities of a sentence, in order.

    Malformed tags are read as conlleval reads them (Tjong Kim Sang and Buchholz 2000): an I- or E- that
    doesn't continue an entity of its type begins one; an entity without E- ends where it isn't continued.
    Errors: UserError for a tag of another form.
    """
    found: list[EntitySpan] = []
    before = "O"
    for place, tag in enumerate(tags):
        if not ENTITY_TAG.fullmatch(tag):
            raise UserError(f"the tag {tag!r} marks no entity: use O, or B-, I-, E- or S- and a type")
        kind, _, label = tag.partition("-")
        continued = kind in "IE" and before[0] in "BI" and before[2:] == label
        if continued:
            found[-1] = (label, found[-1][1], place)
        elif kind != "O":
            found.append((label, place, place))
        before = tag
    return found


def _check_sentences(references: Sequence[Sequence[str]], outputs: Sequence[Sequence[str]]) -> None:
    check_pairs(references, outputs)
    for number, (gold, found) in enumerate(zip(references, outputs, strict=True), 1):
        if len(gold) != len(found):
            raise ValueError(f"sentence {number} has {len(gold)} words and {len(found)} tags")
