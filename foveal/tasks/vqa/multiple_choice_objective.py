"""Multiple choice: each row brings the answers that it may have."""

import math

import torch
from torch import Tensor

from foveal.data.core.batching import ExampleBatch
from foveal.layers.blocks.moe import add_aux, aux_names
from foveal.objectives.classification import ClassificationObjective
from foveal.ops.padding import sequence_mask
from foveal.tasks.vqa.model import MultipleChoiceModel


class MultipleChoiceObjective(ClassificationObjective):
    """`-log p(k | source)` in nats a source, `p = softmax_k(q . c_k / sqrt(D))` over the row's own choices.

    q (D) is what the head makes of the memory, c_k (D) the summary of choice k. Columns of a batch, beside
    those that the encoder reads: `choice` (U, T), the tokens of all choices in the batch, each once;
    `choices` (B, K), which of them each row has; `label`.
    """

    model: MultipleChoiceModel

    def __init__(self, model: MultipleChoiceModel):
        super().__init__(model, ())
        self.aux_names = aux_names(model)

    def _logits(self, batch: ExampleBatch) -> tuple[Tensor, dict[str, Tensor]]:
        wanted, aux = super()._logits(batch)
        choices, beside = self.model.choices(batch.columns["choice"], batch.lengths["choice"])
        which = batch.columns["choices"]
        own = sequence_mask(batch.lengths["choices"], which.shape[1])
        aux = add_aux(aux, {name: sums[which].where(own, 0.0).sum(1) for name, sums in beside.items()})
        vectors = choices.summary.to(wanted.dtype)[which]
        scores = torch.einsum("bd,bkd->bk", wanted, vectors) / math.sqrt(vectors.shape[2])
        return scores.masked_fill(~own, -math.inf), aux
