"""A published network for images in our terms: its name, its labels, its weights under our names."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from foveal.config import EncoderConfig, ModelConfig
from foveal.interop.huggingface.checks import check_tensors
from foveal.interop.huggingface.files import HF_CONFIG_FILE, read_json, read_weights
from foveal.interop.huggingface.hf_config import HFConfig
from foveal.models.encoder import EncoderWithHead
from foveal.models.image_networks import image_encoder, image_head
from foveal.store.sealed import unique_state_dict

BATCHES_TRACKED = "num_batches_tracked"
"""Of a batch norm's updates: an integer, and used by nobody."""
BATCH_NORM_STATISTICS = (BATCHES_TRACKED, "running_mean", "running_var")
"""Of a batch norm, what is counted in training, and no parameter."""


class ImportedImageNetwork(NamedTuple):
    name: str
    model: ModelConfig
    channels: int
    labels: tuple[str, ...]
    tensors: dict[str, Tensor]
    """Under the names of an `EncoderWithHead`, in float32."""
    size: int | None = None
    """Pixels to a side of the images that it reads, if it reads no others."""


def network_model_config(network: str) -> ModelConfig:
    """The model whose encoder is a network of ours by its name."""
    return ModelConfig(encoder=EncoderConfig(kind="image", network=network))


def read_network(
    folder: Path,
    match_network: Callable[[HFConfig], tuple[str, Sequence[int]]],
    published_name: Callable[[str, Sequence[int]], str],
) -> ImportedImageNetwork:
    """Read a model folder of Hugging Face's that is a network of ours by its name.

    `match_network` says the name and the blocks in each stage, `published_name` their name of one of our
    weights in a network of such stages. UserError names the file and what in it is missing, damaged or not
    ours.
    """
    path = folder / HF_CONFIG_FILE
    settings = HFConfig(read_json(path), path)
    network, depths = match_network(settings)
    labels, channels = read_labels(settings), settings.size("num_channels", 3)
    shapes = network_weight_shapes(network, channels, len(labels))
    tensors = rename_tensors(shapes, lambda name: published_name(name, depths), read_weights(folder), folder)
    return ImportedImageNetwork(network, network_model_config(network), channels, labels, tensors)


def network_weight_shapes(network: str, channels: int, classes: int) -> dict[str, Tensor]:
    """Our network's weights on no device."""
    with torch.device("meta"):
        encoder = image_encoder(network, channels, "published")
        return unique_state_dict(EncoderWithHead(encoder, image_head(network, encoder, 224, classes, 0.0)))


def rename_tensors(
    shapes: Mapping[str, Tensor],
    published_name: Callable[[str], str],
    published_tensors: Mapping[str, Tensor],
    path: Path,
) -> dict[str, Tensor]:
    """The `published_tensors` of `path` under our names; `published_name` says the name there of one of ours.

    UserError if names, shapes or kinds are others.
    """
    names = {ours: published_name(ours) for ours in shapes if not ours.endswith(BATCHES_TRACKED)}
    published_tensors = {
        name: tensor for name, tensor in published_tensors.items() if not name.endswith(BATCHES_TRACKED)
    }
    check_tensors({name: shapes[ours] for ours, name in names.items()}, published_tensors, path)
    tensors = {ours: published_tensors[name].float().contiguous() for ours, name in names.items()}
    return tensors | {
        ours: torch.zeros((), dtype=torch.int64) for ours in shapes if ours.endswith(BATCHES_TRACKED)
    }


def read_labels(settings: HFConfig) -> tuple[str, ...]:
    """By number, as Hugging Face's config.json has them."""
    names = settings.get("id2label", {"0": "LABEL_0", "1": "LABEL_1"})
    numbers = list(map(str, range(len(names)))) if isinstance(names, dict) else []
    if len(numbers) < 2 or any(not isinstance(names.get(number), str) for number in numbers):
        raise settings.error("id2label", "expected a name for each class from 0 on, two or more")
    return unique_labels([names[number] for number in numbers])


def unique_labels(names: Sequence[str]) -> tuple[str, ...]:
    """Two classes of one name, as ImageNet's cranes, get their number behind it."""
    return tuple(
        name if names.count(name) == 1 else f"{name} ({number})" for number, name in enumerate(names)
    )
