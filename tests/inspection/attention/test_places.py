"""The places of keys in an image, and layers by number."""

from dataclasses import replace

import torch

from foveal.inspection.attention.layers import find_layer
from tests.support.attention_layers import layer_of


def test_patches_lie_in_rows_after_the_class_token() -> None:
    places = layer_of(torch.rand(1, 7, 7), grid=(2, 3)).places
    assert places[0].isnan().all()
    assert places[1:].tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]


def test_layers_are_counted_from_0() -> None:
    layers = [replace(layer_of(torch.rand(1, 2, 2)), path=path) for path in ("a", "b", "c")]
    assert [find_layer(layers, str(number)).path for number in range(3)] == ["a", "b", "c"]
