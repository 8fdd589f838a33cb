"""Odd pictures, some 1,500: each is read, the same wherever it is used, or skipped by name."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from foveal.config import DataConfig, ImageConfig
from foveal.data import prepare_examples
from foveal.data.core.rows import Row, SkippedRow
from foveal.data.core.standardize import Statistics
from foveal.data.files.data_part import open_part
from foveal.data.images.image_decoding import MAX_ASPECT_RATIO, decode_image, upscale
from foveal.data.images.image_examples import ImageProcessor
from foveal.data.pairs.labels import LabelProcessor
from foveal.data.pairs.pair import PairProcessor
from tests.support.image_bytes import luma
from tests.support.image_variants import SIDE, damaged_variants, readable_variants
from tests.support.pair_formats import IMAGE_LABEL

SIZE = 18
DATA_FORMAT = IMAGE_LABEL
WHOLE = {name: (content, shown) for name, content, shown in readable_variants()}
DAMAGED = {name: (content, before) for name, content, before in damaged_variants()}
LIBTIFF = re.compile(r"changed .*-.*\.tif")
"""Of a packed TIFF with other bytes libtiff tells on standard error, before Pillow hears of it."""


def blocks(pixels: NDArray[Any], count: int = 6) -> NDArray[np.float64]:
    """The mean brightness of count x count parts of it."""
    rows = np.array_split(luma(pixels.astype(float)), min(count, len(pixels)), 0)
    return np.array(
        [[part.mean() for part in np.array_split(row, min(count, row.shape[1]), 1)] for row in rows]
    )


def test_there_are_many() -> None:
    assert len(WHOLE) >= 375
    assert len(DAMAGED) >= 1_000


def test_whole_ones_look_as_they_should(capfd: pytest.CaptureFixture[str]) -> None:
    """Upright, of the right levels; black and white is dithered."""
    for name, (content, shown) in WHOLE.items():
        found = decode_image(content, SIDE, 3)
        assert not isinstance(found, str), (name, found)
        if shown.shape[0] > 1:
            assert found.pixels.shape == shown.shape, name
        most = 16 if name.startswith("1-") else 9
        assert np.abs(blocks(found.pixels) - blocks(shown)).max() <= most, name
    assert capfd.readouterr() == ("", "")


def test_damaged_ones_are_whole_or_refused(capfd: pytest.CaptureFixture[str]) -> None:
    """What is cut off is never half a picture."""
    for name, (content, before) in DAMAGED.items():
        found = decode_image(content, SIDE, 3)
        if not isinstance(found, str) and name.startswith("cut"):
            whole = decode_image(before, SIDE, 3)
            assert not isinstance(whole, str)
            assert (found.pixels == whole.pixels).all(), name
        assert isinstance(found, str) or not name.startswith(("zeros", "name")), name
        said = capfd.readouterr()
        assert said == ("", "") or LIBTIFF.fullmatch(name), said


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of them, in two classes."""
    path = tmp_path_factory.mktemp("odd")
    for number, (name, (content, _)) in enumerate((WHOLE | DAMAGED).items()):
        file = path / "ab"[number % 2] / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)
    return path


@pytest.mark.parametrize("channels", [1, 3])
def test_the_same_in_training_evaluation_and_use(folder: Path, channels: int) -> None:
    """Bit for bit; and what can't be read is skipped by name, for one reason in one line."""
    config = DataConfig(image=ImageConfig(size=SIZE, channels=channels))
    skipped: list[SkippedRow] = []
    rows = list(DATA_FORMAT.read(open_part(str(folder)), config, skipped))
    files = len(WHOLE) + len(DAMAGED)
    assert len(rows) + len(skipped) == files
    assert len(rows) > len(WHOLE)
    for why in skipped:
        label, name = why.location.removeprefix(f"{folder}, ").split("/")
        assert (label in "ab", name in DAMAGED) == (True, True)
        assert why.reason
        assert "\n" not in why.reason
    shown = [upscale(row.fields["picture"], SIZE) for row in rows]
    for picture in shown:
        check_shape(picture, channels)
    image = ImageProcessor(Statistics((0.0,) * channels, (1.0,) * channels), SIZE)
    inputs = PairProcessor(image, LabelProcessor(("a", "b")))
    told: list[str] = []
    part, facts = prepare_examples.prepare_eval_examples(
        DATA_FORMAT, str(folder), config, inputs, told.append
    )
    asked, questions, unasked = prepare_examples.read_unlabeled(
        DATA_FORMAT, str(folder), inputs, config, told.append
    )
    assert facts["skipped"] == len(skipped) == len(unasked)
    counts = [
        line.split(": ")[1].split(" rows")[0].removeprefix("skipped ") for line in told if " rows" in line
    ]
    assert counts == [f"{len(skipped):,}"] * 2
    assert [row.fields["source"] for row in asked] == part.sources == [row.fields["name"] for row in rows]
    for number, (row, picture) in enumerate(zip(rows, shown, strict=True)):
        assert np.array_equal(part.examples[number], picture), row.location
        assert np.array_equal(questions[number], picture), row.location


def check_shape(pixels: NDArray[np.uint8], channels: int) -> None:
    assert pixels.dtype == np.uint8
    assert pixels.shape[2] == channels
    short, long = sorted(pixels.shape[:2])
    assert SIZE <= short <= SIZE * 8 // 7
    assert long <= MAX_ASPECT_RATIO * short


def test_one_by_one_as_all_together(folder: Path) -> None:
    config = DataConfig(image=ImageConfig(size=SIZE))
    together = {row.location: row for row in DATA_FORMAT.read_unlabeled(open_part(str(folder)), config, [])}
    for name in ("turn 6.jpg", "P-0.gif", "I;16-0.tif", "12 bits.tif"):
        (place,) = (place for place in together if place.endswith(f"/{name}"))
        (row,) = DATA_FORMAT.read_unlabeled(open_part(place), config, [])
        assert isinstance(row, Row)
        assert np.array_equal(row.fields["picture"], together[place].fields["picture"])
