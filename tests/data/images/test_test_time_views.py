"""The views of a picture: centre, a pixel aside or corners, and mirror images; at each scale, in order."""

import numpy as np
import pytest
import torch
from PIL import Image

from foveal.data.images.test_time_views import VIEW_COUNTS, make_views


@pytest.fixture
def image() -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).integers(0, 256, (3, 10, 14), np.uint8))


def test_the_views_are_where_they_should_be(image):
    size = 8
    corners = [(1, 3), (0, 0), (0, 6), (2, 0), (2, 6)]
    wanted = [image[:, top : top + size, left : left + size] for top, left in corners]
    wanted += [view.flip(2) for view in wanted]
    found = make_views(image, size, "ten-crop", [1.0])
    assert torch.equal(found, torch.stack(wanted))
    assert torch.equal(make_views(image, size, "flip", [1.0]), found[[0, 5]])
    assert torch.equal(make_views(image, size, "none", [1.0]), found[:1])


def test_a_pixel_aside_the_border_is_mirrored(image):
    size = 8
    wide = np.pad(image.numpy(), ((0, 0), (1, 1), (1, 1)), "reflect")
    wanted = [wide[:, top : top + size, left : left + size] for top, left in ((2, 4), (1, 3), (3, 5))]
    wanted += [view[:, :, ::-1] for view in wanted]
    assert np.array_equal(make_views(image, size, "flip-shift", [1.0]), np.stack(wanted))
    whole = make_views(image[:, :8, :8], size, "flip-shift", [1.0])
    assert torch.equal(whole[0], image[:, :8, :8])
    assert torch.equal(whole[1, :, 1:, 1:], image[:, :7, :7])
    assert torch.equal(whole[1, :, 0, 1:], image[:, 1, :7])


@pytest.mark.parametrize("crops", VIEW_COUNTS)
def test_each_scale_has_its_views(crops, image):
    found = make_views(image, 8, crops, [1.0, 1.5, 2.0])
    assert found.shape == (3 * VIEW_COUNTS[crops], 3, 8, 8)
    parts = [make_views(image, 8, crops, [scale]) for scale in (1.0, 1.5, 2.0)]
    assert torch.equal(found, torch.cat(parts))


def test_a_larger_scale_is_the_picture_enlarged(image):
    pixels = Image.fromarray(image.permute(1, 2, 0).numpy()).resize((28, 20), Image.Resampling.BILINEAR)
    wanted = np.asarray(pixels)[6:14, 10:18].transpose(2, 0, 1)
    (found,) = make_views(image, 8, "none", [2.0]).numpy()
    assert np.abs(found.astype(int) - wanted).max() <= 1


def test_no_side_falls_below_the_size(image):
    assert make_views(image, 8, "ten-crop", [0.1]).shape == (10, 3, 8, 8)
