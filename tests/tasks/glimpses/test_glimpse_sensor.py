"""Glimpses against plain slices of a padded image."""

import numpy as np
import pytest
import torch

from foveal.tasks.glimpses.glimpse_sensor import glimpse_sensor


def sliced(image: np.ndarray, place: np.ndarray, side: int, scale: int) -> np.ndarray:
    """(C, side, side): cut out of the image with zeros around it, and each block of pixels averaged."""
    wide, around = side << scale, 64
    padded = np.pad(image, ((0, 0), (around, around), (around, around)))
    top, left = (
        around + round((float(at) + 1) / 2 * extent - wide / 2)
        for at, extent in zip(place, image.shape[1:], strict=True)
    )
    part = padded[:, top : top + wide, left : left + wide]
    step = 1 << scale
    return part.reshape(len(image), side, step, side, step).mean((2, 4))


@pytest.mark.parametrize(("height", "width", "side", "scales"), [(28, 28, 8, 3), (9, 14, 5, 2), (6, 6, 7, 1)])
def test_it_is_plain_slicing(height: int, width: int, side: int, scales: int) -> None:
    images = torch.randn(40, 2, height, width)
    places = torch.rand(40, 2) * 2 - 1
    places[:3] = torch.tensor([[0.0, 0.0], [-1.0, 1.0], [1.0, -1.0]])
    found = glimpse_sensor(images, places, side, scales)
    assert found.shape == (40, scales, 2, side, side)
    for row in range(40):
        for scale in range(scales):
            expected = sliced(images[row].numpy(), places[row].numpy(), side, scale)
            np.testing.assert_allclose(found[row, scale], expected, atol=1e-6)


def test_the_centre_of_an_even_image_is_its_middle() -> None:
    image = torch.arange(64.0).view(1, 1, 8, 8)
    assert torch.equal(glimpse_sensor(image, torch.zeros(1, 2), 4, 1)[0, 0], image[0, :, 2:6, 2:6])
    assert torch.equal(
        glimpse_sensor(image, torch.zeros(1, 2), 4, 2)[0, 1, 0, 0, 0], image[0, 0, :2, :2].mean()
    )


def test_broken_numbers_are_stood() -> None:
    """A place that is none is the centre; a broken image is broken in what is seen of it alone."""
    images = torch.ones(2, 1, 8, 8)
    images[1] = torch.nan
    places = torch.tensor([[torch.nan, 7.0], [torch.inf, 0.0]])
    found = glimpse_sensor(images, places, 4, 1)
    assert found[0].isfinite().all()
    assert found[1].isnan().any()
