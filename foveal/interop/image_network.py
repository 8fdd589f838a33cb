"""A published network for images in our terms: its name, its labels, its weights under our names."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from foveal.config import EncoderConfig, ModelConfig
from foveal.interop.huggingface.files import CONFIG, read_json, read_weights
from foveal.interop.huggingface.hf_config import Settings
from foveal.interop.huggingface.language_models import check_tensors
from foveal.models.encoder import Encoded
from foveal.models.image_networks import image_encoder, image_head
from foveal.store.sealed import weights_of

COUNT = "num_batches_tracked"
"""Of a batch norm's updates: an integer, and used by nobody."""
COUNTED = (COUNT, "running_mean", "running_var")
"""Of a batch norm, what is counted in training, and no parameter."""


class ForeignNetwork(NamedTuple):
    name: str
    model: ModelConfig
    channels: int
    labels: tuple[str, ...]
    tensors: dict[str, Tensor]
    """Under the names of an `Encoded`, in float32."""
    size: int | None = None
    """Pixels to a side of the images that it reads, if it reads no others."""


def known(network: str) -> ModelConfig:
    """The model whose encoder is a network of ours by its name."""
    return ModelConfig(encoder=EncoderConfig(kind="image", network=network))


def read_named(
    folder: Path,
    recognised: Callable[[Settings], tuple[str, Sequence[int]]],
    theirs: Callable[[str, Sequence[int]], str],
) -> ForeignNetwork:
    """Read a model folder of Hugging Face's that is a network of ours by its name.

    `recognised` says the name and the blocks in each stage, `theirs` their name of one of our weights in a
    network of such stages. UserError names the file and what in it is missing, damaged or not ours.
    """
    path = folder / CONFIG
    settings = Settings(read_json(path), path)
    network, depths = recognised(settings)
    labels, channels = labels_of(settings), settings.size("num_channels", 3)
    shapes = shapes_of(network, channels, len(labels))
    tensors = to_ours(shapes, lambda name: theirs(name, depths), read_weights(folder), folder)
    return ForeignNetwork(network, known(network), channels, labels, tensors)


def shapes_of(network: str, channels: int, classes: int) -> dict[str, Tensor]:
    """Our network's weights on no device."""
    with torch.device("meta"):
        encoder = image_encoder(network, channels, "published")
        return weights_of(Encoded(encoder, image_head(network, encoder, 224, classes, 0.0)))


def to_ours(
    shapes: Mapping[str, Tensor], theirs: Callable[[str], str], found: Mapping[str, Tensor], place: Path
) -> dict[str, Tensor]:
    """The tensors that were `found` at a place, under our names; `theirs` says the name there of one of ours.

    UserError if names, shapes or kinds are others.
    """
    names = {ours: theirs(ours) for ours in shapes if not ours.endswith(COUNT)}
    found = {name: tensor for name, tensor in found.items() if not name.endswith(COUNT)}
    check_tensors({name: shapes[ours] for ours, name in names.items()}, found, place)
    tensors = {ours: found[name].float().contiguous() for ours, name in names.items()}
    return tensors | {ours: torch.zeros((), dtype=torch.int64) for ours in shapes if ours.endswith(COUNT)}


def labels_of(settings: Settings) -> tuple[str, ...]:
    """By number, as Hugging Face's config.json has them."""
    names = settings.get("id2label", {"0": "LABEL_0", "1": "LABEL_1"})
    numbers = list(map(str, range(len(names)))) if isinstance(names, dict) else []
    if len(numbers) < 2 or any(not isinstance(names.get(number), str) for number in numbers):
        raise settings.error("id2label", "expected a name for each class from 0 on, two or more")
    return told_apart([names[number] for number in numbers])


def told_apart(names: Sequence[str]) -> tuple[str, ...]:
    """Two classes of one name, as ImageNet's cranes, get their number behind it."""
    return tuple(
        name if names.count(name) == 1 else f"{name} ({number})" for number, name in enumerate(names)
    )
