"""A classifier of single vectors."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.core.memory import Memory
from foveal.data.core.batching import ExampleBatch
from foveal.encoders.make_memory import make_memory
from foveal.objectives.classification import ClassificationObjective

LABELS = ("a", "b", "c")


class VectorEncoder(nn.Module):
    """A memory of a single vector, the input. The sum of each row is an additional term."""

    width, aux_names = 4, ("total",)

    def forward(self, x: Tensor, lengths: None = None) -> tuple[Memory, dict[str, Tensor]]:
        return make_memory(x[:, None], None, "grid", "mean", (1, 1)), {"total": x.sum(1)}


def vector_batch(source: Tensor, **columns: Tensor) -> ExampleBatch:
    rows = len(columns["label"])
    return ExampleBatch(
        torch.arange(rows), {"source": source, **columns}, {}, torch.ones(rows, dtype=torch.int64)
    )


def vector_logits(task: ClassificationObjective, source: Tensor) -> Tensor:
    return F.linear(source, task.model.head.projection.weight)
