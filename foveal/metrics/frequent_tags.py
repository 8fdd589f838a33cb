"""The baseline of tagging: the most frequent tag of each word, and of endings for words never seen."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

MAX_ENDING = 8
"""Characters of the longest ending that is counted."""


@dataclass(frozen=True)
class FrequentTags:
    """The most frequent tag of each word of training, and of each ending of these words.

    An ending is the last 0 to `MAX_ENDING` characters of a word in lower case.
    """

    of_word: Mapping[str, str]
    of_ending: Mapping[str, str]

    @classmethod
    def fit(cls, sentences: Iterable[Sequence[str]], tags: Iterable[Sequence[str]]) -> "FrequentTags":
        """Count the tags of the words of `sentences`. Among tags that are equally frequent, the first in the
        alphabet is taken.

        Endings are counted once for each different word and tag, since words never seen are like rare words.

        Raises: ValueError: there is no word, or a sentence has another number of words than tags.
        """
        counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for words, word_tags in zip(sentences, tags, strict=True):
            for word, tag in zip(words, word_tags, strict=True):
                counts[word][tag] += 1
        if not counts:
            raise ValueError("no words to count the tags of")
        endings: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for word, tag_counts in counts.items():
            for ending in _endings(word):
                endings[ending].update(tag_counts.keys())
        return cls(_most_frequent(counts), _most_frequent(endings))

    def predict(self, words: Iterable[str]) -> list[str]:
        """Return a tag for each word: its own, or that of its longest known ending."""
        return [self.of_word.get(word) or self._of_unknown(word) for word in words]

    def _of_unknown(self, word: str) -> str:
        return next(self.of_ending[ending] for ending in _endings(word) if ending in self.of_ending)


def _endings(word: str) -> list[str]:
    """Return the endings of a word, the longest first and the empty one last."""
    lower = word.lower()
    return [lower[len(lower) - size :] for size in range(min(MAX_ENDING, len(lower)), -1, -1)]


def _most_frequent(counts: Mapping[str, Counter[str]]) -> dict[str, str]:
    """Return the most frequent tag of each key."""
    return {key: min(tags, key=lambda tag: (-tags[tag], tag)) for key, tags in counts.items()}
