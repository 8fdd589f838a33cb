"""The views of a picture: centre, a pixel aside or corners, and mirror images; at each scale, in order."""

import numpy as np
import pytest
import torch
from PIL import Image

from foveal.data.images.test_time_views import COUNTS, views


@pytest.fixture
def picture() -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).integers(0, 256, (3, 10, 14), np.uint8))


def test_the_views_are_where_they_should_be(picture):
    size = 8
    corners = [(1, 3), (0, 0), (0, 6), (2, 0), (2, 6)]
    wanted = [picture[:, top : top + size, left : left + size] for top, left in corners]
    wanted += [view.flip(2) for view in wanted]
    found = views(picture, size, "ten", [1.0])
    assert torch.equal(found, torch.stack(wanted))
    assert torch.equal(views(picture, size, "mirrored", [1.0]), found[[0, 5]])
    assert torch.equal(views(picture, size, "centre", [1.0]), found[:1])


def test_a_pixel_aside_the_border_is_mirrored(picture):
    size = 8
    wide = np.pad(picture.numpy(), ((0, 0), (1, 1), (1, 1)), "reflect")
    wanted = [wide[:, top : top + size, left : left + size] for top, left in ((2, 4), (1, 3), (3, 5))]
    wanted += [view[:, :, ::-1] for view in wanted]
    assert np.array_equal(views(picture, size, "moved", [1.0]), np.stack(wanted))
    whole = views(picture[:, :8, :8], size, "moved", [1.0])
    assert torch.equal(whole[0], picture[:, :8, :8])
    assert torch.equal(whole[1, :, 1:, 1:], picture[:, :7, :7])
    assert torch.equal(whole[1, :, 0, 1:], picture[:, 1, :7])


@pytest.mark.parametrize("crops", COUNTS)
def test_each_scale_has_its_views(crops, picture):
    found = views(picture, 8, crops, [1.0, 1.5, 2.0])
    assert found.shape == (3 * COUNTS[crops], 3, 8, 8)
    parts = [views(picture, 8, crops, [scale]) for scale in (1.0, 1.5, 2.0)]
    assert torch.equal(found, torch.cat(parts))


def test_a_larger_scale_is_the_picture_enlarged(picture):
    pixels = Image.fromarray(picture.permute(1, 2, 0).numpy()).resize((28, 20), Image.Resampling.BILINEAR)
    wanted = np.asarray(pixels)[6:14, 10:18].transpose(2, 0, 1)
    (found,) = views(picture, 8, "centre", [2.0]).numpy()
    assert np.abs(found.astype(int) - wanted).max() <= 1


def test_no_side_falls_below_the_size(picture):
    assert views(picture, 8, "ten", [0.1]).shape == (10, 3, 8, 8)
