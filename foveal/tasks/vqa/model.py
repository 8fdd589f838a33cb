"""Models of an image and texts about it, from a config."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from foveal.config import ModelConfig
from foveal.core.memory import Memory
from foveal.core.module_facts import LayerGroups, layer_groups, merge_layer_groups
from foveal.encoders.joint import JointEncoder
from foveal.layers.blocks.moe import AuxLosses
from foveal.models.encoder import EncoderMixerFactory, EncoderWithHead, encoder_pooling_of, text_encoder
from foveal.models.stack import make_last_norm, make_stack


class VQAModel(EncoderWithHead):
    """An encoder of several sources, and a head that reads their joint memory."""

    def encode(
        self, columns: Mapping[str, Tensor], lengths: Mapping[str, Tensor]
    ) -> tuple[Memory, AuxLosses]:
        memory, aux = self.encoder(columns, lengths)
        return memory, aux


class MultipleChoiceModel(VQAModel):
    """A `VQAModel` with an encoder of the choices, which are compared with the head's output."""

    choices: Any

    def __init__(self, encoder: nn.Module, choices: nn.Module, head: nn.Module):
        super().__init__(encoder, head)
        self.choices = choices

    def layer_groups(self) -> LayerGroups:
        """Return the parameters by their depth, those of the encoder of choices on their own."""
        return merge_layer_groups(super().layer_groups(), layer_groups(self.choices))


def joint_encoder(
    config: ModelConfig,
    image: nn.Module,
    image_positions: int,
    vocabulary: int,
    max_length: int,
    history: bool,
) -> JointEncoder:
    """Make an encoder of an image, of the history if there is one, and of a question.

    The image has `image_positions` vectors. Texts have `vocabulary` tokens, `max_length` of them at most.
    """
    names = ("history", "question") if history else ("question",)
    parts = {name: text_encoder(config.question, vocabulary, max_length, "model.question") for name in names}
    joint = config.fusion
    stack = make_stack(
        EncoderMixerFactory(joint, "model.fusion"), joint.width, image_positions + len(names) * max_length
    )
    return JointEncoder(
        {"source": image, **parts}, stack, joint.width, make_last_norm(joint), encoder_pooling_of(joint)
    )
