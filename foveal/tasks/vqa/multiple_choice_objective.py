"""Multiple choice: each row brings the answers that it may have."""

import math

import torch
from torch import Tensor

from foveal.data.core.batching import ExampleBatch
from foveal.layers.blocks.moe import added, aux_names
from foveal.objectives.classification import ClassifyTask
from foveal.ops.padding import present
from foveal.tasks.vqa.model import Chooser


class ChooseTask(ClassifyTask):
    """`-log p(k | source)` in nats a source, `p = softmax_k(q . c_k / sqrt(D))` over the row's own choices.

    q (D) is what the head makes of the memory, c_k (D) the summary of choice k. Columns of a batch, beside
    those that the encoder reads: `choice` (U, T), the tokens of all choices in the batch, each once;
    `choices` (B, K), which of them each row has; `label`.
    """

    model: Chooser

    def __init__(self, model: Chooser):
        super().__init__(model, ())
        self.aux_names = aux_names(model)

    def _logits(self, batch: ExampleBatch) -> tuple[Tensor, dict[str, Tensor]]:
        wanted, aux = super()._logits(batch)
        choices, beside = self.model.choices(batch.columns["choice"], batch.lengths["choice"])
        which = batch.columns["choices"]
        own = present(batch.lengths["choices"], which.shape[1])
        aux = added(aux, {name: sums[which].where(own, 0.0).sum(1) for name, sums in beside.items()})
        vectors = choices.summary.to(wanted.dtype)[which]
        scores = torch.einsum("bd,bkd->bk", wanted, vectors) / math.sqrt(vectors.shape[2])
        return scores.masked_fill(~own, -math.inf), aux
