"""Sequence to sequence with hard attention, whose positions are learned by REINFORCE."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from foveal.core.result import ObjectiveOutput, Term
from foveal.core.runtime import at_least_float32
from foveal.core.state import State
from foveal.data.core.batching import ExampleBatch
from foveal.objectives.aux_terms import aux_terms
from foveal.objectives.sequence_to_sequence import SequenceToSequenceObjective
from foveal.ops.padding import sequence_mask

ENTROPY_COEFFICIENT = 0.01
"""The weight of the positions' entropy, without which a decoder becomes certain too early and stops
exploring."""


class HardAttentionObjective(SequenceToSequenceObjective):
    """A decoder reads a single position s_t of the memory for each token, sampled at random (Xu et al. 2015,
    4.1).

    Every target is scored twice, with two independent samples of positions k = 1, 2. With `R_k = log p(y |
    s_k)` and j the other sample, the gradient is

        1/2 sum_k grad log p(y | s_k) + (R_k - R_j) grad log p(s_k) + ENTROPY grad H_k

    Except for the entropy H, the expectation is the gradient of `E_s log p(y | s)`: the reward of the other
    sample does not depend on s_k, so that reward can be the baseline (Williams 1992; Kool et al. 2019). Xu et
    al. use a moving average over batches instead. In evaluation, the decoder reads the likeliest position,
    and nothing is sampled.
    """

    def weights(self, batch: ExampleBatch) -> dict[str, float]:
        return super().weights(batch) | dict.fromkeys(("places", "entropy"), float(batch.tokens))

    def __call__(self, batch: ExampleBatch, carry: State) -> tuple[ObjectiveOutput, State]:
        if not self.model.training:
            return super().__call__(batch, carry)
        batch, rows = batch.to(next(self.model.parameters()).device), len(batch.rows)
        memory, aux = self.model.encode(batch.columns, batch.lengths)
        twice = torch.arange(rows, device=memory.vectors.device).repeat(2)
        targets, lengths = batch.columns["target"][twice], batch.lengths["target"][twice]
        features, state, head_aux = self.teacher_forcing(memory.select_rows(twice), targets, lengths)
        scored = sequence_mask(lengths, targets.shape[1])
        logits = at_least_float32(self.model.head.project(features[scored]))
        nats = F.cross_entropy(logits, targets[scored], reduction="none").detach()
        smoothed = F.cross_entropy(
            logits, targets[scored], reduction="sum", label_smoothing=self.label_smoothing
        )
        reward = -nats.new_zeros(scored.shape).masked_scatter(scored, nats).sum(1)
        log_prob, entropy = log_prob_and_entropy(state).unbind(1)
        halves = {name: sums / 2 for name, sums in head_aux.items()}
        weights = self.weights(batch)
        terms = aux_terms(weights, aux, halves) | {
            "loss": Term(smoothed / 2, weights["loss"]),
            "places": Term(-((reward - reward.roll(rows)) * log_prob).sum() / 2, weights["places"]),
            "entropy": Term(-entropy.sum() / 2, weights["entropy"], ENTROPY_COEFFICIENT),
        }
        return ObjectiveOutput(terms, {"loss": (float(nats.sum() / 2), weights["loss"])}), None


def log_prob_and_entropy(state: Any) -> Float[Tensor, "B 2"]:
    """Return, for each row, the log-probability of the positions read and their entropy, from a head's final
    state."""
    sums: Tensor = sum(block["drawn"] for block in state["blocks"] if "drawn" in block)
    return sums
