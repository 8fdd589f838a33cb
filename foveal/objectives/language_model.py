"""Language modeling: predict each token from the tokens before it."""

import math
from dataclasses import replace
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveal.core.errors import UserError
from foveal.core.recompute import keeping_states
from foveal.core.result import ObjectiveOutput, Term
from foveal.core.runtime import at_least_float32
from foveal.core.state import State
from foveal.data.core.batching import TokenBatch
from foveal.data.text.tokenizer_base import Vocabulary
from foveal.data.text.tokenizers import Tokenizer
from foveal.generation.sampling import Sampling
from foveal.generation.text_stream import collect_texts, generate_text
from foveal.heads.decoder_lm import DecoderLM
from foveal.objectives.aux_terms import aux_terms
from foveal.ops.padding import sequence_mask

PREVIEW_TOKENS = 240
"""Tokens of a preview at most."""


class LanguageModelObjective:
    """The loss `-log p(x_t | x_1 .. x_(t-1))` in nats over a batch of token chunks.

    With `carry_state`, chunks continue each other, and the model's state is carried from chunk to chunk
    (truncated backpropagation). The `reduction` is a mean over tokens, or a sum over each row's chunk.
    `loss_positions` are all positions, or only the last. Terms of the model's `aux` (an expert layer's load
    balance) are added, averaged over rows.

    Raises: UserError: the model's state can't be carried from chunk to chunk.
    """

    def __init__(
        self,
        model: DecoderLM,
        tokenizer: Vocabulary,
        carry_state: bool,
        reduction: Literal["mean", "sum"] = "mean",
        loss_positions: Literal["all", "last"] = "all",
        seed: int = 0,
    ):
        if carry_state and not model.bounded:
            raise UserError(
                "this model's state grows with the text, or its positions are limited, "
                "so the state can't be carried from chunk to chunk: "
                "use task.batching=windows, or attention with a window and rotary positions"
            )
        self.model, self.tokenizer = model, tokenizer
        self.carry_state, self.seed = carry_state, seed
        self.reduction, self.loss_positions = reduction, loss_positions
        self._characters = torch.from_numpy(tokenizer.characters).to(model.projection.weight.device)

    def weights(self, batch: TokenBatch) -> dict[str, float]:
        """Return the weight of each term, from the batch alone."""
        rows = float(batch.inputs.shape[0])
        per_row = self.reduction == "sum" or self.loss_positions == "last"
        return {"loss": rows if per_row else float(batch.tokens)} | dict.fromkeys(self.model.aux_names, rows)

    def start(self, batch: TokenBatch) -> State:
        """Return the initial state of the batch's rows; None if no state is carried."""
        return self.model.init_state(None, batch.inputs.shape[0]) if self.carry_state else None

    def __call__(self, batch: TokenBatch, carry: State) -> tuple[ObjectiveOutput, State]:
        batch = batch.to(self.model.projection.weight.device)
        with keeping_states(self.carry_state):
            features, state, aux = self.model(batch.inputs, carry, batch.lengths)
        targets, lengths = batch.targets, batch.lengths
        if self.loss_positions == "last":
            features, targets, lengths = last_position(features, targets, lengths)
        if lengths is None:
            features, targets = features.flatten(0, 1), targets.flatten()
        else:
            scored = sequence_mask(lengths, targets.shape[1])
            features, targets = features[scored], targets[scored]
        losses = self.model.losses(features, targets)
        weights = self.weights(batch)
        terms = {"loss": Term(losses.label_smoothed, weights["loss"])} | aux_terms(weights, aux)
        loss = float(losses.nll)
        characters = int(self._characters[targets].sum())
        metrics = {
            "loss": (loss, float(targets.numel())),
            "bits_per_character": (loss / math.log(2), float(characters)),
        }
        return ObjectiveOutput(terms, metrics), state if self.carry_state else None

    def log_probabilities(self, batch: TokenBatch) -> Float[Tensor, " N"]:
        """Return the log-probability of each target, row by row, with gradients where they are on."""
        batch = batch.to(self.model.projection.weight.device)
        features, _, _ = self.model(batch.inputs, None, batch.lengths)
        scored = sequence_mask(batch.target_lengths.to(features.device), batch.targets.shape[1])
        logits = at_least_float32(self.model.project(features[scored]))
        return logits.log_softmax(1).gather(1, batch.targets[scored][:, None])[:, 0]

    def with_own_answer(self, batch: TokenBatch) -> TokenBatch:
        """Return the batch with the token that the model finds likeliest as the last target of each row."""
        inputs = batch.to(self.model.projection.weight.device).inputs
        with torch.inference_mode():
            likeliest = self.model.project(self.model(inputs)[0][:, -1]).argmax(1)
        targets = torch.cat([batch.targets[:, :-1], likeliest[:, None].to(batch.targets.device)], 1)
        return replace(batch, targets=targets)

    def preview(self, step: int) -> str:
        """Return a short text generated by the current model. The noise is the same each time, so progress is
        visible."""
        assert isinstance(self.tokenizer, Tokenizer)
        sampling = Sampling(temperature=0.8, seed=self.seed)
        tokens = min(PREVIEW_TOKENS, self.model.limit or PREVIEW_TOKENS)
        pieces = generate_text(self.model, self.tokenizer, [""], tokens, sampling)
        return collect_texts(pieces)[0].text.strip("\n")


def last_position(
    features: Float[Tensor, "B T D"], targets: Int[Tensor, "B T"], lengths: Int[Tensor, " B"] | None
) -> tuple[Float[Tensor, "B 1 D"], Int[Tensor, "B 1"], Int[Tensor, " B"] | None]:
    """Return the last position of each row, with lengths of 1, or of 0 for an empty row."""
    if lengths is None:
        return features[:, -1:], targets[:, -1:], None
    last = (lengths - 1).clamp(min=0)[:, None]
    return features.take_along_dim(last[:, :, None], 1), targets.gather(1, last), lengths.clamp(max=1)
