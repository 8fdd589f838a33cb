"""Sequence to sequence by hard attention, whose places are learned by REINFORCE."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from foveal.core.result import ObjectiveOutput, Term
from foveal.core.runtime import at_least_float32
from foveal.core.state import State
from foveal.data.core.batching import ExampleBatch
from foveal.objectives.sequence_to_sequence import SequenceToSequenceObjective
from foveal.ops.padding import sequence_mask

ENTROPY_COEFFICIENT = 0.01
"""What a nat of the places' entropy is worth: too sure too early, a decoder would look nowhere else."""


class HardAttentionObjective(SequenceToSequenceObjective):
    """A decoder looks at one place s_t of the memory for each token, drawn by chance (Xu et al. 2015, 4.1).

    Every target is written twice, with places of its own. With `R_k = log p(y | s_k)`, k = 1, 2, it follows

        1/2 sum_k grad log p(y | s_k) + (R_k - R_j) grad log p(s_k) + ENTROPY grad H_k,    j the other of them

    which but for the entropy H is the gradient of `E_s log p(y | s)` on average: what the other draw got
    does not depend on s_k, so it may be the baseline (Williams 1992; Kool et al. 2019). Xu et al. take a
    moving average over batches. Evaluated, the decoder looks at the likeliest place: nothing is drawn.
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
        features, state, more = self.teacher_forcing(memory.select_rows(twice), targets, lengths)
        scored = sequence_mask(lengths, targets.shape[1])
        logits = at_least_float32(self.model.head.project(features[scored]))
        nats = F.cross_entropy(logits, targets[scored], reduction="none").detach()
        smoothed = F.cross_entropy(
            logits, targets[scored], reduction="sum", label_smoothing=self.label_smoothing
        )
        reward = -nats.new_zeros(scored.shape).masked_scatter(scored, nats).sum(1)
        log_chance, entropy = log_prob_and_entropy(state).unbind(1)
        halves = {name: sums / 2 for name, sums in more.items()}
        weights = self.weights(batch)
        terms = self.aux_terms(weights, aux, halves) | {
            "loss": Term(smoothed / 2, weights["loss"]),
            "places": Term(-((reward - reward.roll(rows)) * log_chance).sum() / 2, weights["places"]),
            "entropy": Term(-entropy.sum() / 2, weights["entropy"], ENTROPY_COEFFICIENT),
        }
        return ObjectiveOutput(terms, {"loss": (float(nats.sum() / 2), weights["loss"])}), None


def log_prob_and_entropy(state: Any) -> Float[Tensor, "B 2"]:
    """Of each row the log-probability of the places looked at, and their entropy, by a head's last state."""
    found: Tensor = sum(block["drawn"] for block in state["blocks"] if "drawn" in block)
    return found
