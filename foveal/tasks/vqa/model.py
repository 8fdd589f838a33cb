"""Models that read an image and texts about it."""

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
    """A VQA model with an encoder of the choices. The head's output is compared with the choices."""

    choices: Any

    def __init__(self, encoder: nn.Module, choices: nn.Module, head: nn.Module):
        super().__init__(encoder, head)
        self.choices = choices

    def layer_groups(self) -> LayerGroups:
        """Return the parameters by depth, with the encoder of choices in parallel."""
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
    """Return an encoder of an image, a history if `history` is True, and a question, in this order.

    The image has `image_positions` vectors. Texts have `vocabulary` different tokens, and at most
    `max_length` tokens.
    """
    names = ("history", "question") if history else ("question",)
    parts = {name: text_encoder(question, vocabulary, max_length, "task.question") for name in names}
    stack = make_stack(
        EncoderMixerFactory(fusion, "task.fusion"), fusion.width, image_positions + len(names) * max_length
    )
    pooling = encoder_pooling_of(fusion, "task.fusion")
    return JointEncoder({"source": image, **parts}, stack, fusion.width, make_last_norm(fusion), pooling)
