"""ResNets of Hugging Face's: a named network of ours with its classifier, its labels and its weights."""

from collections.abc import Sequence
from pathlib import Path

from foveal.interop.huggingface.hf_config import HFConfig
from foveal.interop.image_network import ImportedImageNetwork, read_network
from foveal.layers.vision.residual import basic_block, bottleneck_block
from foveal.models.image_networks import NETWORKS
from foveal.models.resnet import ResNet

BLOCK_TYPES = {"basic": basic_block, "bottleneck": bottleneck_block}


def read_resnet(folder: Path) -> ImportedImageNetwork:
    """Read a model folder. UserError names the file and what in it is missing, damaged or not ours."""
    return read_network(folder, _match_network, hf_name)


def hf_name(name: str, depths: Sequence[int]) -> str:
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


def _match_network(settings: HFConfig) -> tuple[str, Sequence[int]]:
    """The name of the network, and the blocks in each stage."""
    settings.require("hidden_act", "relu")
    settings.require("downsample_in_first_stage", False)
    settings.require("downsample_in_bottleneck", False)
    kind = settings.choice("layer_type", "bottleneck", {name: name for name in BLOCK_TYPES})
    depths, widths = (
        settings.get("depths", [3, 4, 6, 3]),
        settings.get("hidden_sizes", [256, 512, 1024, 2048]),
    )
    first = settings.size("embedding_size", 64)
    ours = {name: made for name, made in NETWORKS.items() if isinstance(made, ResNet)}
    for name, made in ours.items():
        its = (list(made.depths), list(made.widths), made.first, made.body, made.shortcut, made.pooled)
        if its == (depths, widths, first, BLOCK_TYPES[kind], "projection", True):
            return name, made.depths
    raise settings.error(
        "depths", "with its hidden_sizes, layer_type and embedding_size none of the networks that ours has"
    )
