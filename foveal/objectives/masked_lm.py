"""Masked language modeling: predict the hidden tokens from all other tokens (Devlin et al. 2019, 3.1)."""

from jaxtyping import Float
from torch import Tensor

from foveal.data.core.batching import ExampleBatch
from foveal.data.text.tokenizer_base import Vocabulary
from foveal.models.encoder import EncoderWithHead
from foveal.objectives.hidden_tokens import HiddenTokensObjective


class MaskedLMObjective(HiddenTokensObjective):
    """`-log p(x_t | the visible part of x)` in nats over the hidden tokens. Only hidden positions are
    projected.

    `source` is the masked text.
    """

    model: EncoderWithHead

    def __init__(
        self, model: EncoderWithHead, tokenizer: Vocabulary, preview_examples: ExampleBatch | None = None
    ):
        super().__init__(model, tokenizer, preview_examples, model.encoder.aux_names)

    def hidden_logits(self, batch: ExampleBatch) -> tuple[Float[Tensor, "N V"], dict[str, Tensor]]:
        memory, aux = self.model.encoder(batch.columns["source"], batch.lengths["source"])
        features, _ = self.model.head(memory, batch.columns["hidden"].bool())
        return self.model.head.project(features).float(), aux
