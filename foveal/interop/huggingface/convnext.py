"""ConvNeXt from Hugging Face: one of Foveal's named networks, with its classifier, labels and weights."""

from collections.abc import Sequence
from pathlib import Path

from foveal.interop.huggingface.hf_config import HFConfig
from foveal.interop.image_network import ImportedImageNetwork, read_network
from foveal.models.depthwise_networks import ConvNeXt
from foveal.models.network_registry import NETWORKS

NORM_EPSILON = 1e-6
"""The epsilon of all norms, as published. Hugging Face's last norm has another one, 1e-12 by default, which
changes logits by less than a millionth unless all its inputs are small."""
BLOCK_NAMES = {
    "filter": "dwconv",
    "norm": "layernorm",
    "mlp.expand": "pwconv1",
    "mlp.contract": "pwconv2",
    "scale": "layer_scale_parameter",
}
"""Foveal's and Hugging Face's names of the parts of a block."""


def read_convnext(folder: Path) -> ImportedImageNetwork:
    """Read a model folder.

    Raises: UserError: a file is missing or damaged, or Foveal has no such network.
    """
    return read_network(folder, _match_network, hf_name)


def hf_name(name: str, depths: Sequence[int]) -> str:
    """Return the Hugging Face name of Foveal's weight `name`.

    Hugging Face numbers blocks within each stage; all stages but the first begin with a downsampling layer.
    """
    name = name.replace(".gain", ".weight")
    if name.startswith("head.projection."):
        return name.replace("head.projection", "classifier")
    if name.startswith("head.norm."):
        return name.replace("head.norm", "convnext.layernorm")
    _, _, number, rest = name.split(".", 3)
    if number == "0":
        part = "layernorm" if rest.startswith("1.") else "patch_embeddings"
        return f"convnext.embeddings.{part}.{rest[2:]}"
    blocks = [
        f"{stage}.{block}"
        for stage, depth in enumerate(depths)
        for block in ["downsampling_layer"] * (stage > 0) + [f"layers.{layer}" for layer in range(depth)]
    ]
    for module, hf_module in BLOCK_NAMES.items():
        if rest == module or rest.startswith(f"{module}."):
            rest = rest.replace(module, hf_module)
    return f"convnext.encoder.stages.{blocks[int(number) - 1]}.{rest}"


def _match_network(settings: HFConfig) -> tuple[str, Sequence[int]]:
    """Return the name of the network, and the number of blocks in each stage."""
    settings.require("hidden_act", "gelu")
    settings.require("patch_size", 4)
    if settings.fraction("layer_norm_eps", 1e-12) > NORM_EPSILON:
        raise settings.error("layer_norm_eps", f"Foveal supports only {NORM_EPSILON}")
    depths, widths = settings.get("depths", [3, 3, 9, 3]), settings.get("hidden_sizes", [96, 192, 384, 768])
    for name, network in NETWORKS.items():
        if isinstance(network, ConvNeXt) and [list(network.depths), list(network.widths)] == [depths, widths]:
            return name, network.depths
    raise settings.error("depths", "with its hidden_sizes it is none of Foveal's networks")
