"""Classifiers with scikit-learn's conventions, for its pipelines, grid searches and cross-validation."""

from foveal.core.extras import require

require("sklearn", "foveal.sklearn")

from foveal.sklearn.classifiers import ImageClassifier, SeriesClassifier, TextClassifier  # noqa: E402

__all__ = ["ImageClassifier", "SeriesClassifier", "TextClassifier"]
