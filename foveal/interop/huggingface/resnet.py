"""ResNet from Hugging Face: one of Foveal's named networks, with its classifier, labels and weights."""

from collections.abc import Sequence
from pathlib import Path

from foveal.interop.huggingface.hf_config import HFConfig
from foveal.interop.image_network import ImportedImageNetwork, read_network
from foveal.layers.vision.residual import basic_block, bottleneck_block
from foveal.models.network_registry import NETWORKS
from foveal.models.resnet import ResNet

BLOCK_TYPES = {"basic": basic_block, "bottleneck": bottleneck_block}


def read_resnet(folder: Path) -> ImportedImageNetwork:
    """Read a model folder.

    Raises: UserError: a file is missing or damaged, or Foveal has no such network.
    """
    return read_network(folder, _match_network, hf_name)


def hf_name(name: str, depths: Sequence[int]) -> str:
    """Return the Hugging Face name of Foveal's weight `name`.

    Hugging Face numbers blocks within each stage. Foveal's first block is the embedder.
    """
    if name.startswith("head.projection."):
        return name.replace("head.projection", "classifier.1")
    _, _, number, rest = name.split(".", 3)
    block = "embedder.embedder"
    if number == "0":
        rest = rest.removeprefix("0.")
    else:
        layers = [(stage, layer) for stage, depth in enumerate(depths) for layer in range(depth)]
        stage, layer = layers[int(number) - 1]
        block = f"encoder.stages.{stage}.layers.{layer}"
    return f"resnet.{block}.{rest.replace('body.', 'layer.').replace('norm.', 'normalization.')}"


def _match_network(settings: HFConfig) -> tuple[str, Sequence[int]]:
    """Return the name of the network, and the number of blocks in each stage."""
    settings.require("hidden_act", "relu")
    settings.require("downsample_in_first_stage", False)
    settings.require("downsample_in_bottleneck", False)
    block_type = settings.choice("layer_type", "bottleneck", {name: name for name in BLOCK_TYPES})
    depths = settings.get("depths", [3, 4, 6, 3])
    widths = settings.get("hidden_sizes", [256, 512, 1024, 2048])
    first = settings.size("embedding_size", 64)
    wanted = (depths, widths, first, BLOCK_TYPES[block_type], "projection", True)
    networks = {name: network for name, network in NETWORKS.items() if isinstance(network, ResNet)}
    for name, net in networks.items():
        if (list(net.depths), list(net.widths), net.first, net.body, net.shortcut, net.pooled) == wanted:
            return name, net.depths
    raise settings.error(
        "depths", "with its hidden_sizes, layer_type and embedding_size it is none of Foveal's networks"
    )
