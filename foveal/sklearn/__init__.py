"""Classifiers with scikit-learn's conventions, for its pipelines, grid searches and cross-validation."""

from foveal.core.errors import UserError


class MissingExtraError(UserError, ImportError):
    """A library that an optional part needs is not installed."""


try:
    from foveal.sklearn.classifiers import ImageClassifier, SeriesClassifier, TextClassifier
except ImportError as error:
    if not (error.name or "").startswith("sklearn"):
        raise
    raise MissingExtraError(
        "foveal.sklearn needs scikit-learn 1.6 on: pip install 'foveal[sklearn]'"
    ) from None

__all__ = ["ImageClassifier", "SeriesClassifier", "TextClassifier"]
