"""Counts of words or characters, weighted, and a linear classifier."""

import csv
import sys
from pathlib import Path

from benchmarks.ten_lines.scores import Score, accuracy


def _read(path: Path) -> tuple[list[str], list[str]]:
    csv.field_size_limit(sys.maxsize)
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [row["text"] for row in rows], [row["label"] for row in rows]


def tfidf_svc(train: Path, test: Path, analyzer: str = "word") -> dict[str, Score]:
    """Return the accuracy of a linear support vector machine on TF-IDF of one and two words or characters."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    (texts, labels), (test_texts, test_labels) = _read(train), _read(test)
    model = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, analyzer=analyzer), LinearSVC()
    )
    model.fit(texts, labels)
    return {"TF-IDF + linear SVC": accuracy(model.predict(test_texts), test_labels)}
