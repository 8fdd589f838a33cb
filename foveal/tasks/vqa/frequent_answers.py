"""A baseline that does not look at the image: the most frequent answer to questions that begin alike."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

MAX_WORDS = 4
"""Words of the longest beginning that is counted."""
NAME = "the most frequent answer to the question's first words, without the image"


@dataclass(frozen=True)
class FrequentAnswers:
    """The number of times that each answer followed each beginning of a question in training.

    A beginning is the first 0 to `MAX_WORDS` words in lower case.
    """

    counts: Mapping[tuple[str, ...], Counter[str]]

    @classmethod
    def fit(cls, questions: Iterable[str], answers: Iterable[str]) -> "FrequentAnswers":
        """Count the answers to questions."""
        counts: defaultdict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        for question, answer in zip(questions, answers, strict=True):
            for beginning in _beginnings(question):
                counts[beginning][answer] += 1
        return cls(dict(counts))

    def predict(self, question: str, choices: Sequence[str] = ()) -> str:
        """Return the most frequent answer to the longest known beginning.

        If there are `choices`, return one of them: the first if none was an answer in training.
        """
        for beginning in _beginnings(question):
            counts = self.counts.get(beginning, Counter())
            known = [answer for answer in choices or counts if answer in counts]
            if known:
                return max(known, key=lambda answer: counts[answer])
        return choices[0] if choices else ""


def _beginnings(question: str) -> list[tuple[str, ...]]:
    """Return the beginnings of a question, the longest first and the empty one last."""
    words = question.lower().split()[:MAX_WORDS]
    return [tuple(words[:count]) for count in range(len(words), -1, -1)]
