"""ConvNeXts of Hugging Face's: a named network of ours with its classifier, its labels and its weights."""

from collections.abc import Sequence
from pathlib import Path

from foveal.interop.huggingface.hf_config import HFConfig
from foveal.interop.image_network import ImportedImageNetwork, read_network
from foveal.models.depthwise_networks import ConvNeXt
from foveal.models.image_networks import NETWORKS

NORM_EPSILON = 1e-6
"""Of all norms, as published. Theirs has another for the last one, 1e-12 if not said, which changes logits by
less than a millionth unless all that it norms is small."""
BLOCK_NAMES = {
    "filter": "dwconv",
    "norm": "layernorm",
    "mlp.expand": "pwconv1",
    "mlp.contract": "pwconv2",
    "scale": "layer_scale_parameter",
}
"""Of a block's parts, ours and theirs."""


def read_convnext(folder: Path) -> ImportedImageNetwork:
    """Read a model folder. UserError names the file and what in it is missing, damaged or not ours."""
    return read_network(folder, _match_network, hf_name)


def hf_name(name: str, depths: Sequence[int]) -> str:
    """Their name of our `name`: blocks are numbered within each stage, and all but the first begin with what
    halves the grid."""
    name = name.replace(".gain", ".weight")
    if name.startswith("head.projection."):
        return name.replace("head.projection", "classifier")
    if name.startswith("head.norm."):
        return name.replace("head.norm", "convnext.layernorm")
    _, _, number, rest = name.split(".", 3)
    if number == "0":
        place = "layernorm" if rest.startswith("1.") else "patch_embeddings"
        return f"convnext.embeddings.{place}.{rest[2:]}"
    places = [
        f"{stage}.{place}"
        for stage, depth in enumerate(depths)
        for place in ["downsampling_layer"] * (stage > 0) + [f"layers.{layer}" for layer in range(depth)]
    ]
    for ours, there in BLOCK_NAMES.items():
        if rest == ours or rest.startswith(f"{ours}."):
            rest = rest.replace(ours, there)
    return f"convnext.encoder.stages.{places[int(number) - 1]}.{rest}"


def _match_network(settings: HFConfig) -> tuple[str, Sequence[int]]:
    """The name of the network, and the blocks in each stage."""
    settings.require("hidden_act", "gelu")
    settings.require("patch_size", 4)
    if settings.fraction("layer_norm_eps", 1e-12) > NORM_EPSILON:
        raise settings.error("layer_norm_eps", f"ours has {NORM_EPSILON}")
    depths, widths = settings.get("depths", [3, 3, 9, 3]), settings.get("hidden_sizes", [96, 192, 384, 768])
    for name, made in NETWORKS.items():
        if isinstance(made, ConvNeXt) and [list(made.depths), list(made.widths)] == [depths, widths]:
            return name, made.depths
    raise settings.error("depths", "with its hidden_sizes none of the networks that ours has")
