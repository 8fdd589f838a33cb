"""Checks on the pixels of the picture: the brightest place of each panel, and the size of the
whole picture."""

import io

import numpy as np
import pytest
from matplotlib.image import imread

from foveal.core.errors import UserError
from foveal.inspection.attention_maps.plot_image import (
    GAP,
    LINE_HEIGHT,
    MAX_COLUMNS,
    NUMBER_HEIGHT,
    OVERLAY_ALPHA,
    PANEL_SIZE,
    ImageAttention,
    plot_image_attention,
)
from foveal.inspection.style import DPI


def looked(words: int, grid: tuple[int, int] = (2, 3), shape: tuple[int, int] = (20, 30)) -> ImageAttention:
    """Word t reads place t, over noise."""
    pixels = np.random.default_rng(0).integers(0, 256, (*shape, 3), np.uint8)
    places = grid[0] * grid[1]
    weights = np.eye(places)[np.arange(words) % places]
    return ImageAttention(pixels, grid, weights, [f"word{i}" for i in range(words)])


def picture(*examples: ImageAttention) -> np.ndarray:
    """(height, width) in 0 to 1: how light it is."""
    lightness: np.ndarray = imread(io.BytesIO(plot_image_attention(examples)))[:, :, :3].mean(-1)
    return lightness


def panel(drawn: np.ndarray, number: int, shape: tuple[int, int], rows_above: int = 0) -> np.ndarray:
    """The image of `shape` in its square: panel 0 is the image alone, panel t + 1 that of word t."""
    row, column = divmod(number, MAX_COLUMNS)
    height, width = (PANEL_SIZE * length / max(shape) for length in shape)
    top = (
        (rows_above + row) * (LINE_HEIGHT + PANEL_SIZE + NUMBER_HEIGHT)
        + LINE_HEIGHT
        + (PANEL_SIZE - height) / 2
    )
    left = GAP + column * (PANEL_SIZE + GAP) + (PANEL_SIZE - width) / 2
    edges = (np.array([top, top + height, left, left + width]) * DPI).round().astype(int)
    return drawn[edges[0] : edges[1], edges[2] : edges[3]]


def lightest(drawn: np.ndarray, grid: tuple[int, int]) -> int:
    """The number of the place that is lightest on average."""
    means = [
        part.mean() for rows in np.array_split(drawn, grid[0]) for part in np.array_split(rows, grid[1], 1)
    ]
    return int(np.argmax(means))


@pytest.mark.parametrize(
    ("grid", "shape"), [((2, 3), (20, 30)), ((4, 1), (40, 10)), ((3, 2), (10, 40)), ((3, 3), (7, 7))]
)
def test_lightest_where_the_weight_is(grid: tuple[int, int], shape: tuple[int, int]) -> None:
    """In every panel, those of the second row too, whatever the image is."""
    places = grid[0] * grid[1]
    drawn = picture(looked(8, grid, shape))
    found = [lightest(panel(drawn, 1 + word, shape), grid) for word in range(8)]
    assert found == [word % places for word in range(8)]


def test_black_images_and_white_ones_show_weights_alike() -> None:
    for level in (0, 255):
        one = looked(6)._replace(pixels=np.full((20, 30, 3), level, np.uint8))
        drawn = picture(one)
        assert [lightest(panel(drawn, 1 + word, (20, 30)), (2, 3)) for word in range(6)] == list(range(6))


def test_the_first_panel_is_the_image() -> None:
    one = looked(2, shape=(4, 4))
    drawn = panel(picture(one), 0, (4, 4))
    side = len(drawn) // 8
    centres = drawn[side :: 2 * side, side :: 2 * side][:4, :4]
    np.testing.assert_allclose(centres, one.pixels.mean(-1) / 255, atol=0.01)


def test_the_image_lies_below_the_weights() -> None:
    """Black on the left, white on the right, equal weights: 35 % of the difference is left."""
    pixels = np.zeros((10, 10, 3), np.uint8)
    pixels[:, 5:] = 255
    drawn = panel(picture(ImageAttention(pixels, (2, 2), np.full((1, 4), 0.25), ["all"])), 1, (10, 10))
    left, right = np.median(drawn[:, : len(drawn) // 3]), np.median(drawn[:, -len(drawn) // 3 :])
    assert right - left == pytest.approx(0.35, abs=0.01)
    assert left == pytest.approx(0.65, abs=0.01)


def test_weights_at_centres_and_between_them() -> None:
    """Over black: at a centre the share of the largest, half-way the mean of two, at the edge the nearest."""
    weights = np.array([[0.1, 0.5, 0.2, 0.2]])
    one = ImageAttention(np.zeros((20, 40, 3), np.uint8), (1, 4), weights, ["w"])
    drawn = panel(picture(one), 1, (20, 40))
    places = (np.array([0.02, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 0.98]) * drawn.shape[1]).astype(
        int
    )
    expected = np.array([0.1, 0.1, 0.3, 0.5, 0.35, 0.2, 0.2, 0.2, 0.2]) / 0.5 * OVERLAY_ALPHA
    for row in (2, len(drawn) // 2, len(drawn) - 3):
        np.testing.assert_allclose(drawn[row, places], expected, atol=0.02)


def test_long_texts_and_several_images_go_on_below() -> None:
    sizes = {
        words: picture(looked(words)).shape for words in (0, 2, MAX_COLUMNS - 1, MAX_COLUMNS, 3 * MAX_COLUMNS)
    }
    heights = {
        words: round(size[0] / DPI / (LINE_HEIGHT + PANEL_SIZE + NUMBER_HEIGHT), 1)
        for words, size in sizes.items()
    }
    assert heights == {0: 1, 2: 1, MAX_COLUMNS - 1: 1, MAX_COLUMNS: 2, 3 * MAX_COLUMNS: 4}
    widths = [size[1] for size in sizes.values()]
    assert widths[0] < widths[1] < widths[2] == widths[3] == widths[4]
    first, second = looked(8), looked(3, shape=(9, 9))
    drawn = picture(first, second)
    assert drawn.shape[0] == pytest.approx(3 * (LINE_HEIGHT + PANEL_SIZE + NUMBER_HEIGHT) * DPI, abs=2)
    below = [lightest(panel(drawn, 1 + word, (9, 9), rows_above=2), (2, 3)) for word in range(3)]
    assert below == [0, 1, 2]


def test_a_word_and_its_largest_weight_are_written() -> None:
    """There is ink above a word's panel and below it, none above the image."""
    drawn = picture(looked(2, shape=(9, 9)))
    height, across = round(LINE_HEIGHT * DPI), round((PANEL_SIZE + GAP) * DPI)
    above, below = drawn[:height], drawn[-round(NUMBER_HEIGHT * DPI) :]
    ink = [
        [(part[:, k * across : (k + 1) * across] < 0.5).any() for k in range(3)] for part in (above, below)
    ]
    assert ink == [[False, True, True]] * 2


@pytest.mark.parametrize(
    "word", ["שלום", "小猫", "👩‍👩‍👧", "$\\frac{a$", "x" * 300, "", "\ufffd", "a\u0301", "नमस्ते"]
)
def test_no_word_is_too_strange(word: str) -> None:
    assert plot_image_attention([looked(1)._replace(words=[word])])


def test_nothing_was_read_of_an_image() -> None:
    """Weights of zero are drawn black, not divided by."""
    drawn = panel(picture(looked(1)._replace(weights=np.zeros((1, 6)))), 1, (20, 30))
    assert drawn.max() < 0.36


def test_a_picture_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foveal.inspection.style.MAX_HEIGHT", 4.0)
    assert plot_image_attention([looked(11)])
    with pytest.raises(
        UserError, match="these 13 panels would be taller than 4 inches; give fewer images, or"
    ):
        plot_image_attention([looked(12)])


def test_weights_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"weights \(2, 6\) for 2 words and a grid \(3, 3\)"):
        plot_image_attention([looked(2)._replace(grid=(3, 3))])
    with pytest.raises(ValueError, match=r"weights \(2, 6\) for 1 words"):
        plot_image_attention([looked(2)._replace(words=["one"])])
