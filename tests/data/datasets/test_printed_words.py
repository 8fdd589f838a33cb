"""Printed words: what is drawn, in which fonts, and that it can be read again."""

import io
from itertools import pairwise

import numpy as np
import pytest
from numpy.random import RandomState
from PIL import Image

from foveal.data.datasets import printed_words
from foveal.data.datasets.dataset_cache import dataset_entry
from foveal.data.datasets.printed_words import (
    FONTS,
    IMAGE_SIDE,
    WORD_LENGTHS,
    documentation_words,
    perspective_coefficients,
    render_word,
)
from tests.support.recorded_calls import record_calls

parquet = pytest.importorskip("pyarrow.parquet")


def test_the_parts_have_fonts_and_chances_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(printed_words, "IMAGE_COUNTS", {"train": 30, "valid": 5, "test": 9})
    files = dict(printed_words.printed_words(print))
    assert files == dict(dataset_entry("printed-words").make((), print))
    tables = {name: parquet.read_table(io.BytesIO(content)) for name, content in files.items()}
    assert {name: len(table) for name, table in tables.items()} == {
        "train.parquet": 30,
        "valid.parquet": 5,
        "test.parquet": 9,
    }
    assert tables["train.parquet"]["text"][:5].to_pylist() != tables["valid.parquet"]["text"].to_pylist()
    assert set(tables["train.parquet"]["text"].to_pylist()) <= set(documentation_words())
    content = tables["test.parquet"]["image"][0].as_py()["bytes"]
    assert Image.open(io.BytesIO(content)).size == (IMAGE_SIDE, IMAGE_SIDE)
    fonts = [font for some in FONTS.values() for font in some]
    assert len(fonts) == len(set(fonts))


def test_each_part_is_drawn_with_all_of_its_fonts_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(printed_words, "IMAGE_COUNTS", {"train": 11, "valid": 3, "test": 4})
    loaded = record_calls(monkeypatch, printed_words, "_load_font")
    for name, _ in printed_words.printed_words(print):
        assert {font for font, _ in loaded} == set(FONTS[name.removesuffix(".parquet")])
        loaded.clear()


def test_words_are_plain_and_in_order() -> None:
    words = documentation_words()
    assert words == sorted(set(words))
    assert len(words) > 500
    assert {"the", "function", "error"} & set(words) == {"the", "error"}  # function has too many letters
    assert all(
        word.isascii() and word.islower() and WORD_LENGTHS[0] <= len(word) <= WORD_LENGTHS[1]
        for word in words
    )


@pytest.mark.parametrize("font", [font for some in FONTS.values() for font in some])
def test_letters_are_dark_on_light_and_inside(font: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And other letters are another picture: no font lacks them."""
    monkeypatch.setattr(printed_words, "NOISE_STD", (0.0, 0.0))
    pictures = [
        render_word(word, font, RandomState(3)).astype(int) for word in ("maximum", "writing", "abcdefg")
    ]
    for picture in pictures:
        paper = int(np.median(picture))
        ink = picture < paper - 60
        assert picture.shape == (IMAGE_SIDE, IMAGE_SIDE)
        assert 0.01 < ink.mean() < 0.25
        edge = np.concatenate([ink[0], ink[-1], ink[:, 0], ink[:, -1]])
        assert not edge.any()
    assert all(abs(a - b).max() > 60 for a, b in pairwise(pictures))


def test_four_points_go_where_they_are_sent() -> None:
    chance = np.random.default_rng(0)
    places = np.array([(0, 0), (10, 0), (10, 8), (0, 8)], float)
    sources = places + chance.normal(size=(4, 2))
    a, b, c, d, e, f, g, h = perspective_coefficients(places, sources)
    for (x, y), source in zip(places, sources, strict=True):
        share = g * x + h * y + 1
        assert np.allclose([(a * x + b * y + c) / share, (d * x + e * y + f) / share], source)
    middle = np.array([(2.0, 4.0), (5.0, 4.0), (8.0, 4.0)])  # what was on a line stays on one
    share = middle @ [g, h] + 1
    seen = np.stack([middle @ [a, b] + c, middle @ [d, e] + f], 1) / share[:, None]
    one, other = seen[1] - seen[0], seen[2] - seen[0]
    assert abs(one[0] * other[1] - one[1] * other[0]) < 1e-9


def test_noise_is_a_matter_of_the_chances() -> None:
    first, again, other = (render_word("word", "DejaVuSans", RandomState(seed)) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).mean() > 0.5
    corner = first[:6, :].astype(float)
    assert 1 < corner.std() < 20
