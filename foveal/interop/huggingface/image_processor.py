"""What a network of Hugging Face's was trained to see: the size of images, and the scale of their levels."""

from pathlib import Path

from foveal.data.core.standardize import Statistics
from foveal.data.images.image_examples import ImageInputs
from foveal.interop.huggingface.files import read_json
from foveal.interop.huggingface.hf_config import Settings
from foveal.interop.image_network import ForeignNetwork

PREPROCESSOR = "preprocessor_config.json"
LARGEST = 4096
"""Pixels to a side."""


def read_seen(folder: Path, network: ForeignNetwork) -> ImageInputs:
    """From the file beside the weights, whose levels are from 0 to 1. UserError for what is not ours."""
    path = folder / PREPROCESSOR
    settings = Settings(read_json(path), path)
    for step in ("do_resize", "do_rescale", "do_normalize"):
        settings.require(step, True)
    settings.require("rescale_factor", 1 / 255)
    sides = settings.get("size", 224)
    sides = list(sides.values()) if isinstance(sides, dict) else [sides]
    square = bool(sides) and all(type(side) is int and side == sides[0] for side in sides)
    if not square or not 1 <= sides[0] <= LARGEST:
        raise settings.error("size", "expected the side of a square in pixels")
    if network.size not in (None, sides[0]):
        raise settings.error("size", f"the positions of its model are for images of {network.size} pixels")
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
