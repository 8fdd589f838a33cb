"""Changes of images are equal to what a loop over them does, and each can be undone."""

import numpy as np
import pytest
import torch
from torch import Tensor

from foveal.data.images.augmentation import (
    color_jitter,
    crop_with_padding,
    cutout,
    horizontal_flip,
    mixup,
    random_crop_boxes,
    resized_crop,
)


@pytest.fixture
def images() -> Tensor:
    return torch.randn(6, 3, 8, 10)


def each(count: int, most: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).integers(0, most, count))


@pytest.mark.parametrize("fill", [None, np.array([1.5, 2.5, 3.5], np.float32)])
def test_a_window_over_the_border(fill):
    """Is one of the picture with a border around it."""
    picture = np.random.default_rng(0).integers(0, 256, (9, 11, 3), dtype=np.uint8)
    shape = ((8, 8), (8, 8), (0, 0))
    around = np.pad(picture, shape, "reflect").astype(np.float32)
    if fill is not None:
        around[:] = fill
        around[8:17, 8:19] = picture
    for top in range(-8, 12):
        for left in range(-8, 14):
            found = crop_with_padding(picture, top, left, 5, fill)
            assert (found == around[top + 8 : top + 13, left + 8 : left + 13]).all()


def test_a_window_of_the_border_alone():
    picture = np.zeros((4, 4, 1), np.uint8)
    for away in (-20, -4, 4, 7, 20):
        assert (crop_with_padding(picture, away, 0, 4, np.ones(1, np.float32)) == 1).all()


def test_flipped(images):
    chosen = each(6, 2) == 1
    found = horizontal_flip(images, chosen)
    assert 0 < chosen.sum() < 6
    for number, image in enumerate(images.numpy()):
        assert (found[number].numpy() == (image[..., ::-1] if chosen[number] else image)).all()
    assert (horizontal_flip(found, chosen) == images).all()


@pytest.mark.parametrize("side", [1, 2, 5, 30])
def test_cut_out(side, images):
    row, column = each(6, 8, 3), each(6, 10, 4)
    found = cutout(images, row, column, side)
    for number, image in enumerate(images.numpy().copy()):
        for y in range(8):
            for x in range(10):
                start = row[number] - side // 2, column[number] - side // 2
                if start[0] <= y < start[0] + side and start[1] <= x < start[1] + side:
                    image[:, y, x] = 0
        assert (found[number].numpy() == image).all()


def drawn(*shape: int) -> Tensor:
    return torch.rand(*shape, dtype=torch.float64)


@pytest.mark.parametrize("shape", [(36, 36), (32, 48), (40, 30)])
def test_boxes(shape):
    """Inside, of the areas and proportions that are wanted, and anywhere."""
    count = 4000
    found = random_crop_boxes(
        torch.tensor([shape] * count), drawn(10, count), drawn(10, count), drawn(count), drawn(count)
    )
    top, left, height, width = found.T.double()
    assert (found >= 0).all()
    assert (top + height).max() == shape[0]
    assert (left + width).max() == shape[1]
    area = height * width / (shape[0] * shape[1])
    assert 0.07 < area.min() < 0.1
    assert area.max() > 0.85
    wide = (width / height).log()
    assert wide.abs().max() < np.log(4 / 3) + 0.12  # a whole pixel of ten
    assert abs(wide.mean()) < 0.05 or shape[0] != shape[1]
    assert len(found.unique(dim=0)) > 0.8 * count


def test_the_first_box_that_fits_else_the_largest():
    """Of the tries (share, proportion) the second is 16 x 16; the third would do too."""
    share = torch.tensor([[0.99], [0.25], [0.1]]).double()
    area = (share - 0.08) / 0.92
    ratio = torch.tensor([[0.99], [0.5], [0.5]]).double()
    half = torch.tensor([0.5]).double()
    assert random_crop_boxes(torch.tensor([[32, 32]]), area, ratio, half, half).tolist() == [[8, 8, 16, 16]]
    whole = torch.ones(3, 1).double()
    assert random_crop_boxes(torch.tensor([[30, 90]]), whole, ratio, half, half).tolist() == [[0, 25, 30, 40]]
    assert random_crop_boxes(torch.tensor([[90, 30]]), whole, ratio, half, half).tolist() == [[25, 0, 40, 30]]


def triangle(old: int, new: int) -> np.ndarray:
    """(new, old): what each old pixel gives to each new one, by a triangle as wide as the larger of both."""
    scale = max(1.0, old / new)
    centres = (np.arange(new) + 0.5) * old / new
    weights = np.maximum(0, 1 - np.abs(np.arange(old) + 0.5 - centres[:, None]) / scale)
    return weights / weights.sum(1, keepdims=True)


@pytest.mark.parametrize("box", [[0, 0, 20, 30], [3, 4, 9, 7], [2, 1, 12, 12], [19, 29, 1, 1]])
def test_resized(box):
    picture = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
    top, left, height, width = box
    part = picture[top : top + height, left : left + width].astype(float)
    expected = np.einsum("yh,xw,hwc->cyx", triangle(height, 12), triangle(width, 12), part)
    found = resized_crop(torch.from_numpy(picture), box, 12)
    assert np.abs(found.numpy() - expected).max() <= 1.5  # rounded twice


@pytest.mark.parametrize("channels", [1, 3])
def test_jittered(channels):
    levels = torch.rand(5, channels, 4, 6) * 255
    factors = torch.rand(3, 5) * 2
    found = color_jitter(levels, *factors)
    for number, image in enumerate(levels.double().numpy()):
        brightness, contrast, saturation = factors[:, number].tolist()
        weights = np.array([0.299, 0.587, 0.114] if channels == 3 else [1.0])
        image = np.clip(image * brightness, 0, 255)
        mean = np.tensordot(weights, image, 1).mean()
        image = np.clip(mean + (image - mean) * contrast, 0, 255)
        grey = np.tensordot(weights, image, 1)
        image = np.clip(grey + (image - grey) * saturation, 0, 255)
        assert np.abs(found[number].numpy() - image).max() < 1e-3
    same = torch.ones(5)
    assert torch.allclose(color_jitter(levels, same, same, same), levels, atol=1e-4)


def test_mixed(images):
    share, label = torch.rand(6), torch.arange(6)
    found = mixup({"source": images, "label": label}, share)
    for number in range(6):
        before = (number - 1) % 6
        wanted = share[number] * images[number] + (1 - share[number]) * images[before]
        torch.testing.assert_close(found["source"][number], wanted)
        assert (int(found["label"][number]), int(found["other"][number])) == (number, before)
    assert found["share"] is share
