"""The words of a training split, known by their beginnings, endings and characters."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from foveal.core.parse_json import parse_json
from foveal.data.core.standardize import explain_read_errors
from foveal.data.text.tokenizer_base import UnitCounts

VOCABULARY_FILE = "vocabulary.json"
MAX_WORDS = 20_000
"""Most words of a vocabulary: the most frequent ones."""
BEGINNINGS, ENDINGS = (1, 2, 3), (1, 2, 3, 4)
"""The lengths of the beginnings and endings that are forms of a word."""
FORMS = 1 + len(BEGINNINGS) + len(ENDINGS)
MAX_CHARACTERS = 24
"""Characters of a word that are read. Of a longer word, the same number is read at each end."""
UNKNOWN_FORM = 0
"""The id of a form that is unknown, or that a word is too short to have."""
EDGE, UNKNOWN_CHARACTER, KNOWN_CHARACTERS = 0, 1, 2
"""The ids of what is beyond a word's ends and of an unknown character, and the first id of the others."""


@dataclass(frozen=True)
class WordVocabulary:
    """The `counts` of the words in lower case, the most frequent first, and the `characters` of all words.

    The forms of a word are the word in lower case, and its first and last few characters, if these are fewer
    than the whole word. Beginnings and endings of a single word are no forms.
    """

    counts: Mapping[str, int]
    characters: str

    @classmethod
    def fit(cls, words: Iterable[str]) -> "WordVocabulary":
        """Count the words of a training split."""
        spelled = Counter(words)
        lower: Counter[str] = Counter()
        for word, count in spelled.items():
            lower[word.lower()] += count
        known = sorted(lower, key=lambda word: (-lower[word], word))[:MAX_WORDS]
        characters = "".join(sorted({character for word in spelled for character in word}))
        return cls({word: lower[word] for word in known}, characters)

    @cached_property
    def form_counts(self) -> dict[str, int]:
        """The count of each form, in the order of their ids, which begin with `UNKNOWN_FORM` + 1."""
        parts, part_words = Counter[str](), Counter[str]()
        for word, count in self.counts.items():
            for part in filter(None, _parts(word)):
                parts[part] += count
                part_words[part] += 1
        shared = {part: parts[part] for part in sorted(parts) if part_words[part] > 1}
        return {**self.counts, **shared}

    def count_units(self, texts: Iterable[str]) -> UnitCounts:
        """Count the known and unknown characters of texts, except spaces."""
        characters = Counter[str]()
        for text in texts:
            characters.update(text.replace(" ", ""))
        unknown = Counter({each: n for each, n in characters.items() if each not in self._character_ids})
        return UnitCounts("characters", characters.total() - unknown.total(), unknown)

    def encode(self, words: Sequence[str]) -> NDArray[np.int32]:
        """Return a row for each word (T, FORMS + MAX_CHARACTERS): the ids of its forms and its characters.

        After a word's last character stands `EDGE`.
        """
        rows = np.zeros((len(words), FORMS + MAX_CHARACTERS), np.int32)
        for row, word in zip(rows, words, strict=True):
            lower = word.lower()
            row[:FORMS] = [self._form_ids.get(form, UNKNOWN_FORM) for form in (lower, *_parts(lower))]
            half = MAX_CHARACTERS // 2
            read = word if len(word) <= MAX_CHARACTERS else word[:half] + word[-half:]
            ids = [self._character_ids.get(character, UNKNOWN_CHARACTER) for character in read]
            row[FORMS : FORMS + len(ids)] = ids
        return rows

    @cached_property
    def _form_ids(self) -> dict[str, int]:
        return {form: form_id for form_id, form in enumerate(self.form_counts, UNKNOWN_FORM + 1)}

    @cached_property
    def _character_ids(self) -> dict[str, int]:
        return {character: i for i, character in enumerate(self.characters, KNOWN_CHARACTERS)}

    @property
    def character_ids(self) -> int:
        """The number of character ids, with those of `EDGE` and `UNKNOWN_CHARACTER`."""
        return KNOWN_CHARACTERS + len(self.characters)

    def to_json(self) -> bytes:
        """Return the complete vocabulary as JSON."""
        return json.dumps({"words": [*self.counts.items()], "characters": self.characters}).encode()


def load_vocabulary(path: Path) -> WordVocabulary:
    """Read the vocabulary that `to_json` wrote.

    Raises: UserError: the file is missing or damaged.
    """
    with explain_read_errors(path):
        content = parse_json(path.read_bytes())
        counts = {str(word): int(count) for word, count in content["words"]}
        return WordVocabulary(counts, str(content["characters"]))


def _parts(word: str) -> list[str]:
    """Return the beginnings and endings of a word, with empty texts for those as long as the word.

    No word has a NUL, which tells the two apart from words and from each other.
    """
    beginnings = [f"{word[:size]}\0" if size < len(word) else "" for size in BEGINNINGS]
    return beginnings + [f"\0{word[-size:]}" if size < len(word) else "" for size in ENDINGS]
