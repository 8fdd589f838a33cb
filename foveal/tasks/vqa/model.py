"""Models of an image and texts about it, from a config."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from foveal.config import ModelConfig
from foveal.core.memory import Memory
from foveal.encoders.joint import JointEncoder
from foveal.layers.blocks.moe import Aux
from foveal.models.encoder import Encoded, EncoderMixers, summary_of, text_encoder
from foveal.models.stack import make_last_norm, make_stack


class Joined(Encoded):
    """An encoder of several sources, and a head that reads their joint memory."""

    def encode(self, columns: Mapping[str, Tensor], lengths: Mapping[str, Tensor]) -> tuple[Memory, Aux]:
        memory, aux = self.encoder(columns, lengths)
        return memory, aux


class Chooser(Joined):
    """The same, with an encoder of the choices that the head compares with it."""

    choices: Any

    def __init__(self, encoder: nn.Module, choices: nn.Module, head: nn.Module):
        super().__init__(encoder, head)
        self.choices = choices


def joint_encoder(
    config: ModelConfig, image: nn.Module, places: int, vocabulary: int, longest: int, history: bool
) -> JointEncoder:
    """An encoder of an image that becomes `places` vectors, of what was said before if there is a `history`,
    and of a question, the last. Texts are of `vocabulary` tokens, `longest` at most."""
    names = ("history", "question") if history else ("question",)
    parts = {name: text_encoder(config.question, vocabulary, longest, "model.question") for name in names}
    joint = config.joint
    stack = make_stack(EncoderMixers(joint, "model.joint"), joint.width, places + len(names) * longest)
    return JointEncoder(
        {"source": image, **parts}, stack, joint.width, make_last_norm(joint), summary_of(joint)
    )
