"""Permutation language models: they predict tokens of a text in any order (XLNet, Yang et al. 2019)."""

import numpy as np
import torch

from foveal.config.values import Size
from foveal.data.core.batching import ExampleBatch
from foveal.data.text.special_tokens import SpecialTokens
from foveal.data.text.text_windows import TokenizedText
from foveal.data.text.tokenizers import TokenIds
from foveal.models.stack_settings import keys_below
from foveal.tasks.base import TaskSettings
from foveal.tasks.components import ModelComponent
from foveal.tasks.permutation_lm.model import PermutationLM
from foveal.tasks.permutation_lm.objective import PermutationLMObjective
from foveal.tasks.permutation_lm.permuted_batches import PREDICTED_FRACTION, PermutedBatches, places_of
from foveal.tasks.shapes.hidden_tokens import HiddenTokensTask

MODEL_SETTINGS = ("layers", "width", "expansion", "activation", "norm_epsilon", "dropout")
"""The settings below `model` of both streams."""


class PermutationLMSettings(TaskSettings):
    heads: Size = 4
    """Heads of the attention of both streams."""
    segments: bool = False
    """Parameters that say whether two tokens are of the same segment, as in the published model."""


class PermutationLMTask(HiddenTokensTask):
    name = "permutation-lm"
    purpose = "Predict tokens of a text in random orders."
    preset = "permutation-lm"
    Settings = PermutationLMSettings
    settings: PermutationLMSettings
    encoders = ("none",)
    has_decoder = False
    balances_experts = False
    scored_fraction = PREDICTED_FRACTION
    always_read = tuple(keys_below("model", ("expansion", "activation", "norm_epsilon")))
    batches = PermutedBatches
    model_in_words = "permutation language model: predict hidden tokens"

    def settings_read(self) -> set[str]:
        return super().settings_read() | keys_below("model", MODEL_SETTINGS)

    def check(self) -> None:
        super().check()
        width, heads = self.config.model.width, self.settings.heads
        if width % heads or width % 2:
            raise ValueError(f"model.width={width} is not even, or no multiple of task.heads={heads}")

    def components(self) -> list[ModelComponent]:
        sizes = self.config.model
        return [ModelComponent("", "two-stream attention", str(sizes.layers), str(sizes.width))]

    def new_model(self) -> PermutationLM:
        return self._model_for_vocab(self.processor.size)

    def example_model(self) -> PermutationLM:
        return self._model_for_vocab(self.planned_sizes()["vocabulary"])

    def _model_for_vocab(self, tokens: int) -> PermutationLM:
        sizes = self.config.model
        return PermutationLM(
            SpecialTokens(tokens).vocab_size,
            sizes.width,
            sizes.layers,
            self.settings.heads,
            round(sizes.expansion * sizes.width),
            self.settings.segments,
            sizes.activation,
            sizes.dropout,
            sizes.norm_epsilon,
        )

    def longest_batch(self, rows: int) -> ExampleBatch:
        length = self.config.data.context_length
        lengths, tokens = torch.full((rows,), length), torch.zeros(rows, length, dtype=torch.long)
        hidden = (torch.arange(length) < PREDICTED_FRACTION * length).long().expand(rows, length)
        places = places_of(hidden)
        columns = {"source": tokens, "target": tokens, "hidden": hidden, "rank": hidden, "places": places}
        return ExampleBatch(torch.arange(rows), columns, {"source": lengths}, lengths)

    def objective(self, preview_examples: TokenizedText | None = None) -> PermutationLMObjective:
        return PermutationLMObjective(self.model, self.processor, self.preview_batch(preview_examples))

    def gap_columns(self, source: TokenIds) -> dict[str, TokenIds]:
        """Return the columns of a text with gaps, each of which is predicted from all other tokens."""
        columns = super().gap_columns(source)
        hidden = columns["hidden"]
        return columns | {"rank": hidden, "places": np.flatnonzero(hidden)}
