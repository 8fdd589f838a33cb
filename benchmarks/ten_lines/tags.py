"""The most frequent tag of each word, and a linear classifier of words in their context."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from benchmarks.ten_lines.scores import Score, accuracy, entity_f1

Tags = list[list[str]]
COLUMNS = 1 << 18
"""Features are hashed into these."""


def _read(path: Path) -> tuple[Tags, Tags]:
    """Return the words and the tags of the sentences of a .conllu or .conll file."""
    word, tag = (1, 3) if path.suffix == ".conllu" else (0, -1)
    blocks = [
        [line.split("\t") for line in block.splitlines() if line]
        for block in path.read_text(encoding="utf-8").split("\n\n")
        if block.strip()
    ]
    return [[row[word] for row in rows] for rows in blocks], [[row[tag] for row in rows] for rows in blocks]


def _features(words: Sequence[str]) -> Iterator[list[str]]:
    """Yield a word's beginnings and ends, its neighbors, and its form."""
    padded = ["<", "<", *words, ">", ">"]
    for i, word in enumerate(words):
        yield [
            *(f"end {word[-n:]}" for n in (1, 2, 3, 4)),
            *(f"start {word[:n]}" for n in (1, 2, 3)),
            *(f"{n} {padded[i + 2 + n].lower()}" for n in (-2, -1, 0, 1, 2)),
            f"capital {word[0].isupper()}",
            f"digit {any(letter.isdigit() for letter in word)}",
            f"hyphen {'-' in word}",
        ]


def _split(flat: Sequence[str], like: Tags) -> Tags:
    """Cut tags into sentences as long as those of `like`."""
    rest = iter(flat)
    return [[next(rest) for _ in sentence] for sentence in like]


def frequent_and_linear(train: Path, test: Path, entities: bool) -> dict[str, Score]:
    """Return accuracies of words, or F1 of entities."""
    from sklearn.feature_extraction import FeatureHasher
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline

    (words, tags), (test_words, test_tags) = _read(train), _read(test)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for word, tag in zip(chain(*words), chain(*tags), strict=True):
        counts[word][tag] += 1
    usual = Counter(chain(*tags)).most_common(1)[0][0]
    frequent = [counts[word].most_common(1)[0][0] if word in counts else usual for word in chain(*test_words)]
    model = make_pipeline(
        FeatureHasher(COLUMNS, input_type="string"),
        SGDClassifier("modified_huber", alpha=1e-5, max_iter=20, tol=None, random_state=0),
    )
    model.fit([f for sentence in words for f in _features(sentence)], list(chain(*tags)))
    linear = model.predict([f for sentence in test_words for f in _features(sentence)])
    guesses = {"most frequent tag": frequent, "linear features": list(linear)}
    if entities:
        return {name: entity_f1(_split(guess, test_tags), test_tags) for name, guess in guesses.items()}
    return {name: accuracy(guess, list(chain(*test_tags))) for name, guess in guesses.items()}
