"""Features that are not learned: their sizes, their scale, and visual words one patch at a time."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from foveal.core.errors import UserError
from foveal.core.runtime import autocast
from foveal.layers.data_dependent_init import DataDependentInit
from foveal.layers.vision import visual_words
from foveal.layers.vision.handcrafted_features import (
    ColorHistogram,
    HistogramOfOrientedGradients,
    StandardizedFeatures,
)
from foveal.layers.vision.visual_words import (
    MIN_CONTRAST,
    MIN_SIMILARITY,
    WHITENING_EPSILON,
    PatchSimilarities,
    VisualWords,
)
from foveal.models.image_networks import image_encoder


@pytest.fixture
def images() -> Tensor:
    torch.manual_seed(0)
    return torch.randn(20, 3, 13, 18)


@pytest.fixture
def words(images: Tensor) -> VisualWords:
    torch.manual_seed(1)
    layer = VisualWords(3, words=10, side=4)
    layer.fit(images)
    return layer


def test_the_numbers_of_the_lecture():
    """8 x 8 cells and 9 orientations make 10,800 numbers of 320 x 240 pixels."""
    memory, _ = image_encoder("hog", 3, "published")(torch.randn(1, 3, 240, 320))
    assert memory.segments[0].grid == (30, 40)
    assert memory.vectors[0].numel() == 10_800


def test_pixels_that_fill_no_cell_are_left_out(images):
    found = HistogramOfOrientedGradients(9)(images)
    assert found.shape == (20, 9, 1, 2)
    changed = images.clone()
    changed[:, :, 9:] += 1
    assert torch.equal(HistogramOfOrientedGradients(9)(changed), found)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_colour_histogram_has_length_one(images, channels):
    found = ColorHistogram(4)(images[:, :channels])
    assert found.shape == (20, 4**channels, 1, 1)
    torch.testing.assert_close(found.square().sum(1), torch.ones(20, 1, 1))


@pytest.mark.parametrize(
    "feature", [HistogramOfOrientedGradients(9), ColorHistogram(3), VisualWords(3, 5, 4)]
)
def test_what_was_fitted_is_of_size_one(images, feature, monkeypatch):
    layer = StandardizedFeatures(
        feature, {HistogramOfOrientedGradients: 9, ColorHistogram: 27, VisualWords: 5}[type(feature)]
    )
    assert isinstance(layer, DataDependentInit)
    monkeypatch.setattr("foveal.layers.vision.handcrafted_features.IMAGES_PER_CHUNK", 7)
    layer.fit(images)
    maps = layer(images)
    torch.testing.assert_close(maps.mean((0, 2, 3)), torch.zeros(maps.shape[1]), atol=1e-5, rtol=0)
    torch.testing.assert_close(maps.square().mean(), torch.ones(()))
    assert not list(layer.parameters())


def test_a_feature_that_begins_from_images_is_given_them(images, words):
    layer: Any = StandardizedFeatures(VisualWords(3, words=10, side=4), 10)
    torch.manual_seed(1)
    VisualWords(3, words=10, side=4)  # draws as many numbers as the fixture's
    layer.fit(images)
    assert torch.equal(layer.feature.words, words.words)


def test_images_of_one_colour_leave_it_finite():
    layer = StandardizedFeatures(HistogramOfOrientedGradients(9), 9)
    layer.fit(torch.zeros(4, 3, 8, 8))
    assert layer(torch.randn(2, 3, 8, 8)).isfinite().all()


def test_until_it_is_fitted_it_is_the_feature_itself(images):
    assert torch.equal(StandardizedFeatures(nn.Identity(), 3)(images), images)


def words_by_definition(layer: VisualWords, image: np.ndarray) -> np.ndarray:
    """Patch by patch (K, 2, 2)."""
    mean, whitening, words = (t.double().numpy() for t in (layer.mean, layer.whitening, layer.words))
    rows, columns = ((size - 4) // 2 + 1 for size in image.shape[1:])
    found = np.zeros((len(words), 2, 2))
    for i in range(rows):
        for j in range(columns):
            patch = image[:, 2 * i : 2 * i + 4, 2 * j : 2 * j + 4].ravel()
            patch = (patch - patch.mean()) / np.sqrt(patch.var() + MIN_CONTRAST**2)
            patch = (patch - mean) @ whitening
            word = np.argmin(((words - patch) ** 2).sum(1))
            found[word, int(i >= rows / 2), int(j >= columns / 2)] += 1 / (rows * columns)
    return found


def test_words_are_counted_by_quarters(images, words, monkeypatch):
    found = words(images)
    for image, counts in zip(images.double().numpy(), found, strict=True):
        np.testing.assert_allclose(counts, words_by_definition(words, image), atol=1e-6)
    monkeypatch.setattr(visual_words, "PIXELS_PER_CHUNK", 3 * 13 * 18)
    assert torch.equal(words(images), found)


def test_similarities_are_averaged_by_ninths(images: Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Patch by patch, as in Coates and Ng 2011."""
    layer = PatchSimilarities(3, words=5, side=4)
    layer.fit(images[:, :, :12, :12])
    torch.testing.assert_close(layer.words.norm(dim=1), torch.ones(5))
    found = layer(images[:, :, :12, :12])
    assert found.shape == (20, 10, 3, 3)
    mean, whitening, words = (t.double().numpy() for t in (layer.mean, layer.whitening, layer.words))
    image, expected = images[7].double().numpy(), np.zeros((10, 3, 3))
    for i in range(9):
        for j in range(9):
            patch = image[:, i : i + 4, j : j + 4].ravel()
            patch = (patch - patch.mean()) / np.sqrt(patch.var() + MIN_CONTRAST**2)
            products = words @ ((patch - mean) @ whitening)
            both = np.concatenate([products, -products])
            expected[:, i // 3, j // 3] += np.maximum(both - MIN_SIMILARITY, 0) / 9
    np.testing.assert_allclose(found[7], expected, atol=1e-5)
    monkeypatch.setattr(visual_words, "PIXELS_PER_CHUNK", 3 * 12 * 12)
    torch.testing.assert_close(layer(images[:, :, :12, :12]), found)


def test_words_know_neither_brightness_nor_contrast(images, words):
    torch.testing.assert_close(words(100 * images + 7), words(10 * images))


def test_words_are_the_same_in_lower_precision(images, words):
    wanted = words(images)
    with autocast(torch.device("cpu"), "bfloat16"):
        assert torch.equal(words(images), wanted)


def test_patches_are_whitened(images, words):
    """A direction of variance v has v / (v + NOISE) behind it."""
    torch.manual_seed(1)
    points = words._sample_patches(images).double()
    white = torch.cov(words.double()._whiten(points).T)
    variances = torch.linalg.eigvalsh(torch.cov(points.T))
    wanted = (variances / (variances + WHITENING_EPSILON)).sort().values
    torch.testing.assert_close(torch.linalg.eigvalsh(white), wanted, rtol=1e-3, atol=1e-3)


def test_the_seed_chooses_the_words(images):
    made = []
    for seed in (0, 0, 1):
        layer = VisualWords(3, words=10, side=4)
        torch.manual_seed(seed)
        layer.fit(images)
        made.append(layer.words)
    assert torch.equal(made[0], made[1])
    assert not torch.equal(made[0], made[2])


def test_too_few_patches(images):
    with pytest.raises(UserError, match="400 words can't be made of 80 patches"):
        VisualWords(3, words=400, side=12).fit(images)


@pytest.mark.parametrize("count", [1, 2, 24])
def test_similarities_to_the_patches_of_few_small_images(count):
    """The default for few small images works with fewer patches than words; the other words stay random."""
    torch.manual_seed(0)
    layer, images = PatchSimilarities(3, words=256, side=6), torch.randn(count, 3, 8, 8)
    random = layer.words.clone()
    layer.fit(images)
    assert layer(images).isfinite().all()
    assert torch.equal(torch.isclose(layer.words, random).all(1), torch.arange(256) >= 9 * count)
    torch.testing.assert_close(layer.words.norm(dim=1), torch.ones(256))
    with pytest.raises(UserError, match="256 words can't be made of 1 patches"):
        PatchSimilarities(3, words=256, side=8).fit(images[:1])
