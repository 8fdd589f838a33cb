"""The objective of multiple choice: each row has its own choices."""

import math

import torch
from torch import Tensor

from foveal.data.core.batching import ExampleBatch
from foveal.layers.blocks.moe import add_aux, aux_names
from foveal.objectives.classification import ClassificationObjective
from foveal.ops.padding import sequence_mask
from foveal.tasks.vqa.model import MultipleChoiceModel


class MultipleChoiceObjective(ClassificationObjective):
    """`-log p(k | source)` in nats per source, `p = softmax_k(q . c_k / sqrt(D))` over the row's own choices.

    q (D) is the head's output for the memory, and c_k (D) the summary of choice k. Columns of a batch, in
    addition to the encoder's: `choice` (U, T), the tokens of every choice in the batch once; `choices` (B,
    K), the indices of each row's choices; `label`.
    """

    model: MultipleChoiceModel

    def __init__(self, model: MultipleChoiceModel):
        super().__init__(model, ())
        self.aux_names = aux_names(model)

    def _logits(self, batch: ExampleBatch) -> tuple[Tensor, dict[str, Tensor]]:
        queries, aux = super()._logits(batch)
        choices, choice_aux = self.model.choices(batch.columns["choice"], batch.lengths["choice"])
        indices = batch.columns["choices"]
        mask = sequence_mask(batch.lengths["choices"], indices.shape[1])
        aux = add_aux(aux, {name: sums[indices].where(mask, 0.0).sum(1) for name, sums in choice_aux.items()})
        vectors = choices.summary.to(queries.dtype)[indices]
        scores = torch.einsum("bd,bkd->bk", queries, vectors) / math.sqrt(vectors.shape[2])
        return scores.masked_fill(~mask, -math.inf), aux
