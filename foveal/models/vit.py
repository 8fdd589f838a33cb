"""Vision Transformers by their published sizes (Dosovitskiy et al. 2021; Touvron et al. 2021, table 1)."""

from dataclasses import dataclass
from typing import Literal

from torch import nn

from foveal.config import EncoderConfig
from foveal.encoders.patches import PatchEncoder
from foveal.heads.classification import ClassificationHead
from foveal.models.encoder import patch_encoder


@dataclass(frozen=True)
class VisionTransformer:
    """Twelve pre-norm layers over patches of 16x16, with a final norm. For small images, patches are 4x4.

    The classifier reads the class token, or the mean of the patches. Each patch has a position. Unlike a
    convolutional network, the encoder therefore fits images of one size only.
    """

    width: int
    heads: int
    pooling: Literal["cls", "mean"] = "cls"

    def make_encoder(self, channels: int, small: bool, size: int) -> PatchEncoder:
        return patch_encoder(self.config(4 if small else 16), channels, size)

    def make_head(self, width: int, grid: tuple[int, int], classes: int, dropout: float) -> nn.Module:
        return ClassificationHead(width, classes, "encoder", dropout)

    def config(self, patch: int) -> EncoderConfig:
        """Return the settings of a patch encoder with these sizes."""
        return EncoderConfig.model_validate(
            {
                "kind": "patches",
                "patch_size": patch,
                "mixers": "attention",
                "layers": 12,
                "width": self.width,
                "attention": {"heads": self.heads},
                "positions": {"kind": "learned"},
                "feedforward": "mlp",
                "norm": "layer",
                "norm_epsilon": 1e-6,
                "residual": True,
                "pooling": self.pooling,
            }
        )
