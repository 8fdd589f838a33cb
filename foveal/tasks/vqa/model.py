"""Models of an image and texts about it, from a config."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from foveal.config import EncoderStackConfig
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
    """The same, with an encoder of the choices that the head compares with it."""

    choices: Any

    def __init__(self, encoder: nn.Module, choices: nn.Module, head: nn.Module):
        super().__init__(encoder, head)
        self.choices = choices

    def layer_groups(self) -> LayerGroups:
        """Return the parameters by their depth, those of the encoder of choices on their own."""
        return merge_layer_groups(super().layer_groups(), layer_groups(self.choices))


def joint_encoder(
    question: EncoderStackConfig,
    fusion: EncoderStackConfig,
    image: nn.Module,
    image_positions: int,
    vocabulary: int,
    max_length: int,
    history: bool,
) -> JointEncoder:
    """An encoder of an image that becomes `image_positions` vectors, of what was said before if there is a
    `history`, and of a question, the last. Texts are of `vocabulary` tokens, `max_length` at most."""
    names = ("history", "question") if history else ("question",)
    parts = {name: text_encoder(question, vocabulary, max_length, "task.question") for name in names}
    stack = make_stack(
        EncoderMixerFactory(fusion, "task.fusion"), fusion.width, image_positions + len(names) * max_length
    )
    return JointEncoder(
        {"source": image, **parts}, stack, fusion.width, make_last_norm(fusion), encoder_pooling_of(fusion)
    )
