"""The preprocessing of a Hugging Face image network: the size of images, and the scale of pixel values."""

from pathlib import Path

from foveal.data.core.standardize import Statistics
from foveal.data.images.image_examples import ImageProcessor
from foveal.data.pairs.labels import LabelProcessor
from foveal.data.pairs.pair import PairProcessor
from foveal.interop.huggingface.files import read_json
from foveal.interop.huggingface.hf_config import HFConfig
from foveal.interop.image_network import ImportedImageNetwork

HF_PREPROCESSOR_FILE = "preprocessor_config.json"
MAX_IMAGE_SIZE = 4096
"""Most pixels to a side."""


def read_image_processor(folder: Path, network: ImportedImageNetwork) -> PairProcessor:
    """Read the processor from the file next to the weights, in which pixel values are from 0 to 1.

    Raises: UserError: the file is missing, or has a preprocessing that Foveal does not support.
    """
    path = folder / HF_PREPROCESSOR_FILE
    settings = HFConfig(read_json(path), path)
    for step in ("do_resize", "do_rescale", "do_normalize"):
        settings.require(step, True)
    settings.require("rescale_factor", 1 / 255)
    sides = settings.get("size", 224)
    sides = list(sides.values()) if isinstance(sides, dict) else [sides]
    square = bool(sides) and all(type(side) is int and side == sides[0] for side in sides)
    if not square or not 1 <= sides[0] <= MAX_IMAGE_SIZE:
        raise settings.error("size", "expected the side of a square in pixels")
    if network.size not in (None, sides[0]):
        raise settings.error("size", f"the positions of its model are for images of {network.size} pixels")
    mean, std = (
        tuple(255 * level for level in _read_channel_values(settings, key, network.channels))
        for key in ("image_mean", "image_std")
    )
    return PairProcessor(ImageProcessor(Statistics(mean, std), sides[0]), LabelProcessor(network.labels))


def _read_channel_values(settings: HFConfig, key: str, channels: int) -> list[float]:
    value = settings.get(key, None)
    complete = isinstance(value, list) and len(value) == channels
    if not complete or not all(isinstance(level, float) and 0 < level < 1 for level in value):
        raise settings.error(key, f"expected {channels} numbers between 0 and 1, one for each channel")
    levels: list[float] = value
    return levels
