"""ResNets of Hugging Face's: a named network of ours with its classifier, its labels and its weights."""

from collections.abc import Iterable
from pathlib import Path

from foveal.data.images import ImageInputs
from foveal.data.standardize import Statistics
from foveal.interop.folder import CONFIG, read_json, read_weights
from foveal.interop.network import ForeignNetwork, shapes_of, to_ours, told_apart
from foveal.interop.settings import Settings
from foveal.layers.residual import basic, bottleneck
from foveal.models.convnets import NETWORKS
from foveal.models.residual import ResidualNetwork

RESNET = "resnet"
PREPROCESSOR = "preprocessor_config.json"
LARGEST = 4096
"""Pixels to a side."""
BODIES = {"basic": basic, "bottleneck": bottleneck}


def read_resnet(folder: Path) -> ForeignNetwork:
    """Read a model folder. UserError names the file and what in it is missing, damaged or not ours."""
    path = folder / CONFIG
    settings = Settings(read_json(path), path)
    network, recipe = _network(settings)
    labels, channels = _labels(settings), settings.size("num_channels", 3)
    shapes = shapes_of(network, channels, len(labels))
    tensors = to_ours(shapes, lambda name: theirs(name, recipe.depths), read_weights(folder), folder)
    return ForeignNetwork(network, channels, labels, tensors)


def read_seen(folder: Path, network: ForeignNetwork) -> ImageInputs:
    """What the network was trained to see; errors as above. Theirs standardises levels from 0 to 1."""
    path = folder / PREPROCESSOR
    settings = Settings(read_json(path), path)
    settings.require("rescale_factor", 1 / 255)
    sides = settings.get("size", 224)
    sides = list(sides.values()) if isinstance(sides, dict) else [sides]
    square = bool(sides) and all(type(side) is int and side == sides[0] for side in sides)
    if not square or not 1 <= sides[0] <= LARGEST:
        raise settings.error("size", "expected the side of a square in pixels")
    mean, deviation = (
        tuple(255 * level for level in _levels(settings, key, network.channels))
        for key in ("image_mean", "image_std")
    )
    return ImageInputs(Statistics(mean, deviation), network.labels, sides[0])


def _levels(settings: Settings, key: str, channels: int) -> list[float]:
    levels = settings.get(key, None)
    known = isinstance(levels, list) and len(levels) == channels
    if not known or not all(isinstance(level, float) and 0 < level < 1 for level in levels):
        raise settings.error(key, f"expected {channels} numbers between 0 and 1, one for each channel")
    found: list[float] = levels
    return found


def theirs(name: str, depths: Iterable[int]) -> str:
    """Their name of our `name`: blocks are numbered within each stage, and the first is the embedder."""
    if name.startswith("head.projection."):
        return name.replace("head.projection", "classifier.1")
    _, _, number, rest = name.split(".", 3)
    place = "embedder.embedder"
    if number == "0":
        rest = rest.removeprefix("0.")
    else:
        blocks = [(stage, layer) for stage, depth in enumerate(depths) for layer in range(depth)]
        stage, layer = blocks[int(number) - 1]
        place = f"encoder.stages.{stage}.layers.{layer}"
    return f"resnet.{place}.{rest.replace('body.', 'layer.').replace('norm.', 'normalization.')}"


def _network(settings: Settings) -> tuple[str, ResidualNetwork]:
    """The name of the network, and what it is made of."""
    settings.require("hidden_act", "relu")
    settings.require("downsample_in_first_stage", False)
    settings.require("downsample_in_bottleneck", False)
    kind = settings.choice("layer_type", "bottleneck", {name: name for name in BODIES})
    depths, widths = (
        settings.get("depths", [3, 4, 6, 3]),
        settings.get("hidden_sizes", [256, 512, 1024, 2048]),
    )
    first = settings.size("embedding_size", 64)
    ours = {name: made for name, made in NETWORKS.items() if isinstance(made, ResidualNetwork)}
    for name, made in ours.items():
        its = (list(made.depths), list(made.widths), made.first, made.body, made.shortcut, made.pooled)
        if its == (depths, widths, first, BODIES[kind], "projection", True):
            return name, made
    raise settings.error(
        "depths", "with its hidden_sizes, layer_type and embedding_size none of the networks that ours has"
    )


def _labels(settings: Settings) -> tuple[str, ...]:
    """By number."""
    names = settings.get("id2label", {"0": "LABEL_0", "1": "LABEL_1"})
    numbers = list(map(str, range(len(names)))) if isinstance(names, dict) else []
    if len(numbers) < 2 or any(not isinstance(names.get(number), str) for number in numbers):
        raise settings.error("id2label", "expected a name for each class from 0 on, two or more")
    return told_apart([names[number] for number in numbers])
