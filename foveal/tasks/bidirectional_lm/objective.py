"""Bidirectional language modeling: the losses of a forward and of a backward language model (ELMo)."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from foveal.core.result import ObjectiveOutput, Term
from foveal.core.state import State
from foveal.data.core.batching import ExampleBatch
from foveal.data.text.text_windows import TextWindows
from foveal.objectives.stateless import StatelessObjective
from foveal.ops.cross_entropy import linear_cross_entropy
from foveal.ops.padding import sequence_mask
from foveal.tasks.bidirectional_lm.model import BidirectionalLM


class PlainWindows(TextWindows):
    """Windows of which the model reads the original text."""

    def columns(
        self, tokens: Int[Tensor, "B T"], lengths: Int[Tensor, " B"], generator: torch.Generator
    ) -> dict[str, Tensor]:
        return {"source": self.add_ends(tokens, lengths)}


class BidirectionalLMObjective(StatelessObjective):
    """`-log p(x_t | x_1 .. x_(t-1)) - log p(x_t | x_(t+1) .. x_T)` in nats, over the predictions of both
    models (Peters et al. 2018, section 3.1).

    Tokens from the number `vocabulary` on are special: they are read, but not predicted.
    """

    def __init__(self, model: BidirectionalLM, vocabulary: int):
        self.model, self.vocabulary = model, vocabulary

    def predicted(self, batch: ExampleBatch) -> tuple[Bool[Tensor, "B T"], Bool[Tensor, "B T"]]:
        """Return where the forward model predicts the next token, and where the backward model predicts the
        token before: `(B, T - 1)`, of the first and of the last positions."""
        source = batch.columns["source"]
        both = sequence_mask(batch.lengths["source"] - 1, source.shape[1] - 1)
        is_text = source < self.vocabulary
        return both & is_text[:, 1:], both & is_text[:, :-1]

    def weights(self, batch: ExampleBatch) -> dict[str, float]:
        """Return the weight of each term, from the batch alone: the number of predictions of both models."""
        return {"loss": float(sum(int(places.sum()) for places in self.predicted(batch)))}

    def __call__(self, batch: ExampleBatch, carry: State) -> tuple[ObjectiveOutput, State]:
        batch = batch.to(next(self.model.parameters()).device)
        source, (forward, backward) = batch.columns["source"], self.predicted(batch)
        there, back = self.model.encoder(source, batch.lengths["source"])
        features = torch.cat([there[-1][:, :-1][forward], back[-1][:, 1:][backward]])
        targets = torch.cat([source[:, 1:][forward], source[:, :-1][backward]])
        nats = self._nats(features, targets)
        weights = self.weights(batch)
        metrics = {"loss": (float(nats.detach()), weights["loss"])}
        return ObjectiveOutput({"loss": Term(nats, weights["loss"])}, metrics), None

    def preview(self, step: int) -> str | None:
        """Return None: the model writes nothing."""
        return None

    def _nats(self, features: Float[Tensor, "N D"], targets: Int[Tensor, " N"]) -> Float[Tensor, ""]:
        projection = self.model.projection
        return linear_cross_entropy(features, projection.weight, projection.bias, targets).label_smoothed
