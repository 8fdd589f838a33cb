"""Published image networks as Foveal's: name, labels, and weights under Foveal's names."""

from collections import Counter
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
"""The counter of a batch norm's updates: an integer that nothing reads."""
BATCH_NORM_STATISTICS = (BATCHES_TRACKED, "running_mean", "running_var")
"""The buffers of a batch norm, which are no parameters."""


class ImportedImageNetwork(NamedTuple):
    """An image network from a file, with its labels."""

    name: str
    model: ModelConfig
    channels: int
    labels: tuple[str, ...]
    tensors: dict[str, Tensor]
    """The weights under the names of an `EncoderWithHead`, in float32."""
    size: int | None = None
    """The side in pixels of the images that the network reads; None if it reads all sizes."""


def network_model_config(network: str) -> ModelConfig:
    """Return the config of a model whose encoder is the named network."""
    return ModelConfig(encoder=EncoderConfig(kind="image", network=network))


def read_network(
    folder: Path,
    match_network: Callable[[HFConfig], tuple[str, Sequence[int]]],
    published_name: Callable[[str, Sequence[int]], str],
) -> ImportedImageNetwork:
    """Read a Hugging Face model folder as one of Foveal's named networks.

    `match_network` returns the network's name and the number of blocks in each stage. `published_name` maps
    Foveal's name of a weight, and these numbers, to the name in the folder.

    Raises: UserError: a file is missing or damaged, or Foveal has no such network.
    """
    path = folder / HF_CONFIG_FILE
    settings = HFConfig(read_json(path), path)
    network, depths = match_network(settings)
    labels, channels = read_labels(settings), settings.size("num_channels", 3)
    shapes = network_weight_shapes(network, channels, len(labels))
    tensors = rename_tensors(shapes, lambda name: published_name(name, depths), read_weights(folder), folder)
    return ImportedImageNetwork(network, network_model_config(network), channels, labels, tensors)


def network_weight_shapes(network: str, channels: int, classes: int) -> dict[str, Tensor]:
    """Return the weights of Foveal's network as tensors on the meta device, which have no values."""
    with torch.device("meta"):
        encoder = image_encoder(network, channels, "published")
        return unique_state_dict(EncoderWithHead(encoder, image_head(network, encoder, 224, classes, 0.0)))


def rename_tensors(
    shapes: Mapping[str, Tensor],
    published_name: Callable[[str], str],
    published_tensors: Mapping[str, Tensor],
    path: Path,
) -> dict[str, Tensor]:
    """Return the `published_tensors` of the file `path` under Foveal's names.

    `published_name` maps Foveal's name of a weight to the published one.

    Raises: UserError: names, shapes or dtypes are not those of `shapes`.
    """
    published_names = {name: published_name(name) for name in shapes if not name.endswith(BATCHES_TRACKED)}
    published_tensors = {
        name: tensor for name, tensor in published_tensors.items() if not name.endswith(BATCHES_TRACKED)
    }
    expected = {published: shapes[name] for name, published in published_names.items()}
    check_tensors(expected, published_tensors, path)
    tensors = {
        name: published_tensors[published].float().contiguous() for name, published in published_names.items()
    }
    return tensors | {
        name: torch.zeros((), dtype=torch.int64) for name in shapes if name.endswith(BATCHES_TRACKED)
    }


def read_labels(settings: HFConfig) -> tuple[str, ...]:
    """Return the labels of a Hugging Face config.json, in the order of their ids."""
    names = settings.get("id2label", {"0": "LABEL_0", "1": "LABEL_1"})
    numbers = list(map(str, range(len(names)))) if isinstance(names, dict) else []
    if len(numbers) < 2 or any(not isinstance(names.get(number), str) for number in numbers):
        raise settings.error("id2label", "expected a name for each class from 0 on, two or more")
    return unique_labels([names[number] for number in numbers])


def unique_labels(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names. If classes share a name, as ImageNet's cranes do, their ids are added."""
    counts = Counter(names)
    return tuple(name if counts[name] == 1 else f"{name} ({number})" for number, name in enumerate(names))
