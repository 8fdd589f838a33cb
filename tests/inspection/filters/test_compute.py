"""Filters: what the gradient of a unit by the pixels is; and their pictures, all on one scale."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from foveal.encoders.video import Conv3dEncoder
from foveal.inspection.filters.compute import Filters, first_layer_filters
from foveal.inspection.filters.pixels import MAX_FILTERS, filter_images, select_filters, weight_scale
from foveal.inspection.filters.view import filters_payload
from foveal.inspection.panels import Images
from foveal.models.encoder import EncoderWithHead
from foveal.models.image_networks import image_encoder, image_head
from tests.support.named_networks import logits

SIZE, UNIT = 32, 3
NETWORKS = ("linear", "mlp", "lenet-5", "alexnet", "resnet-20", "airbench", "convnext-t", "vit-ti")


def made(network: str, channels: int, size: int = SIZE) -> EncoderWithHead:
    encoder = image_encoder(network, channels, "small", size=size)
    return EncoderWithHead(encoder, image_head(network, encoder, size, 5, 0.0)).eval()


def gradient(model: EncoderWithHead, layer: str, image: Tensor) -> np.ndarray[Any, Any]:
    """Of the output of a unit of `layer`, at the place in the middle, by the pixels; cut to those it sees."""
    kept: list[Tensor] = []
    hook = model.get_submodule(layer).register_forward_hook(lambda _, given, output: kept.append(output))
    logits(model, image.requires_grad_())
    hook.remove()
    output = kept[0]
    if output.dim() > 3:  # a map: channels first
        output = output[(0, UNIT, *(side // 2 for side in output.shape[2:]))]
    else:  # of all pixels, or of each patch
        output = output[0, output.shape[1] // 2, UNIT] if output.dim() == 3 else output[0, UNIT]
    (found,) = torch.autograd.grad(output, image)
    seen = found[0].nonzero()
    low, high = seen.min(0).values, seen.max(0).values + 1
    return found[0][tuple(slice(int(a), int(b)) for a, b in zip(low, high, strict=True))].numpy()


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("network", NETWORKS)
def test_a_filter_is_the_gradient_by_the_pixels(network: str, channels: int) -> None:
    model = made(network, channels)
    found = first_layer_filters(model, channels, SIZE)
    assert found is not None
    by_pixels = gradient(model, found.layer, torch.randn(1, channels, SIZE, SIZE))
    np.testing.assert_allclose(found.weights[UNIT][:, 0], by_pixels, atol=1e-6)


def test_of_clips() -> None:
    """Each frame of a filter stands where its weights are."""
    encoder = Conv3dEncoder(3, 16, 2, 8).eval()
    found = first_layer_filters(encoder, 3, 8)
    assert found is not None
    kept: list[Tensor] = []
    hook = encoder.get_submodule(found.layer).register_forward_hook(lambda *seen: kept.append(seen[2]))
    clip = torch.randn(1, 7, 3, 8, 8).requires_grad_()
    encoder(clip, torch.tensor([7]))
    hook.remove()
    (by_pixels,) = torch.autograd.grad(kept[0][0, UNIT, 3, 4, 4], clip)
    np.testing.assert_allclose(
        found.weights[UNIT], by_pixels[0, 2:5, :, 3:6, 3:6].movedim(0, 1).numpy(), atol=1e-6
    )


@pytest.mark.parametrize("network", ["hog", "color-histogram", "visual-words", "patch-similarities"])
def test_features_that_are_not_learned_have_none(network: str) -> None:
    """Though a classifier may have as many numbers as there are pixels: words, of 40 x 40 in grey."""
    assert first_layer_filters(made(network, 1, 40), 1, 40) is None


def some(weights: np.ndarray[Any, Any]) -> Filters:
    return Filters("layer", weights.astype(np.float32))


def test_tiles_are_the_weights_on_one_scale() -> None:
    weights = np.zeros((2, 3, 1, 2, 2))
    weights[0, 0, 0, 0, 1], weights[1, 2, 0, 1, 0], weights[1, :, 0, 1, 1] = 2.0, -1.0, 2.0
    assert weight_scale(some(weights)) == pytest.approx(2)
    found = filter_images(some(weights))
    assert found[0, 0, 1].tolist() == [255, 128, 128]
    assert found[1, 1, 0].tolist() == [128, 128, 64]
    assert found[1, 1, 1].tolist() == [255, 255, 255]
    assert (filter_images(some(np.zeros((2, 1, 3, 2, 2)))) == 128).all()


def test_frames_stand_side_by_side_in_grey() -> None:
    weights = np.zeros((1, 1, 2, 1, 1))
    weights[0, 0, 1] = 1
    assert filter_images(some(weights)).tolist() == [[[[128] * 3, [255] * 3]]]


def test_the_largest_are_drawn_first_and_classes_as_they_come() -> None:
    weights = np.arange(200.0)[:, None, None, None, None] * np.ones((1, 1, 1, 2, 2))
    filters = some(weights)
    assert select_filters(filters, None) == [*range(199, 199 - MAX_FILTERS, -1)]
    assert select_filters(some(weights[:3]), ["a", "b", "c"]) == [0, 1, 2]
    assert filters.norms[3] == pytest.approx(6)
    assert filters.idle == 2


@pytest.mark.parametrize("labels", [None, ("a", "$b", "c_", "d", "e", "f", "g")])
def test_the_images_are_filters_in_order_with_their_labels(labels: tuple[str, ...] | None) -> None:
    filters = some(np.random.randn(7, 3, 1, 8, 8))
    payload = filters_payload("run", filters, labels)
    (images,) = payload.drawn()
    assert isinstance(images, Images)
    numbers = select_filters(filters, labels)
    assert len(images.tiles()) == 7
    for tile, number in zip(images.tiles(), numbers, strict=True):
        assert (tile.pixels == filter_images(filters)[number]).all()
        assert [caption.text for caption in tile.captions] == ([labels[number]] if labels else [])
    assert payload.values["norms"] == pytest.approx(filters.norms.tolist())
    assert dict(payload.facts)["templates" if labels else "filters"] == "7 of 3 x 8 x 8"
