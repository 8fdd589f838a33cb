"""Permutation language modeling: predict tokens from those before them in a random order (XLNet)."""

import torch
from jaxtyping import Float
from torch import Tensor

from foveal.data.core.batching import ExampleBatch
from foveal.objectives.hidden_tokens import HiddenTokensObjective
from foveal.tasks.permutation_lm.model import PermutationLM


class PermutationLMObjective(HiddenTokensObjective):
    """`-log p(x_i | x_j with rank_j < rank_i)` in nats over the hidden tokens (Yang et al. 2019,
    equation 5).

    More columns of a batch: `rank`, the order; `places`, the positions of the hidden tokens, with padding on
    the right.
    """

    model: PermutationLM

    def hidden_logits(self, batch: ExampleBatch) -> tuple[Float[Tensor, "N V"], dict[str, Tensor]]:
        columns, hidden = batch.columns, batch.columns["hidden"].bool()
        inputs = columns["source"], columns["rank"], columns["places"], batch.lengths["source"]
        rows = torch.arange(len(hidden), device=hidden.device)[:, None].expand_as(hidden)
        numbers = columns["hidden"].cumsum(1) - 1  # of each hidden token, among those of its row
        features = self.model.features(*inputs)[rows[hidden], numbers[hidden]]
        return self.model.projection(features).float(), {}
