"""The classifiers: of texts, images and time series."""

from typing import Any

from foveal.sklearn.base import RunClassifier
from foveal.sklearn.errors import InputError
from foveal.sklearn.images import EIGHT_BITS, read_images, white_levels, with_8_bits
from foveal.sklearn.runs import answer_texts
from foveal.sklearn.series import read_series
from foveal.sklearn.targets import Targets
from foveal.sklearn.texts import read_texts
from foveal.tasks.results import AnsweredRow


class TextClassifier(RunClassifier):
    """Label texts: a list, an array, or a column of a DataFrame.

    Up to 5,000 texts get n-grams of characters and a classifier in closed form; more texts, or a `budget`, a
    network. `start_from="minilm"` starts from published weights for English. The parameters are those of
    `RunClassifier`.
    """

    _encoder, _column = "text", "text"

    def _read(self, X: Any, is_fit: bool) -> list[str]:
        return read_texts(X)

    def _check_classes(self, targets: Targets) -> None:
        rows, classes = len(targets.ids), len(targets.classes)
        if classes > rows // 2 and rows > 4:
            raise InputError(f"y has {classes:,} classes in {rows:,} rows; give two rows or more of a class")

    def _answers(self, sources: list[Any]) -> list[AnsweredRow]:
        return answer_texts(self.run_, sources, len(self.labels_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = tags.input_tags.string = True
        return tags


class ImageClassifier(RunClassifier):
    """Label images: an array (N, H, W), (N, H, W, C) or (N, C, H, W), or a list of arrays or of Pillow's
    images, of any sizes.

    Few images get fixed features, or those of published weights, and a classifier in closed form; more
    images, or a `budget`, a network. Pixels are from 0 to 1, or from 0 to 255, in `predict` as in `fit`. The
    parameters are those of `RunClassifier`.
    """

    _encoder, _column = "image", "image"
    white_levels_: dict[str, int]

    def _read(self, X: Any, is_fit: bool) -> list[Any]:
        images = read_images(X)
        levels = white_levels(images, EIGHT_BITS if is_fit else self.white_levels_)
        if is_fit:
            self.white_levels_ = levels
        return with_8_bits(images, levels)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        return tags


class SeriesClassifier(RunClassifier):
    """Label time series: an array (N, T), or (N, T, C) with C channels, or a list of arrays (T,) or (T, C) of
    different lengths.

    Up to 8,000 series get MiniRocket and a classifier in closed form; more series, or a `budget`, a network.
    The parameters are those of `RunClassifier`.
    """

    _encoder, _column = "series", "values"

    def _read(self, X: Any, is_fit: bool) -> list[Any]:
        return read_series(self, X, is_fit)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags
