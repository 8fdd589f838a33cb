"""Predict the hidden tokens of a text. How the model reads the others is said by a subclass."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from foveal.core.result import ObjectiveOutput, Term
from foveal.core.state import State
from foveal.data.core.batching import ExampleBatch
from foveal.data.text.tokenizer_base import Tokenizer, Vocabulary
from foveal.objectives.aux_terms import aux_terms
from foveal.objectives.stateless import StatelessObjective


class HiddenTokensObjective(StatelessObjective, ABC):
    """`-log p(x_t | what the model sees of x)` in nats over the hidden tokens.

    Columns of a batch: `source`, the text that the model reads; `target`, the original text; `hidden`, 1 at
    tokens to predict. `aux_names` are those of the model. `preview_examples` is a batch for previews.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Vocabulary,
        preview_examples: ExampleBatch | None = None,
        aux_names: Sequence[str] = (),
    ):
        self.model, self.tokenizer, self.preview_examples = model, tokenizer, preview_examples
        self.aux_names = list(aux_names)

    def weights(self, batch: ExampleBatch) -> dict[str, float]:
        """Return the weight of each term, from the batch alone."""
        hidden = float(batch.columns["hidden"].sum())
        return {"loss": hidden} | dict.fromkeys(self.aux_names, float(len(batch.rows)))

    def __call__(self, batch: ExampleBatch, carry: State) -> tuple[ObjectiveOutput, State]:
        batch = batch.to(next(self.model.parameters()).device)
        weights = self.weights(batch)
        logits, aux = self.hidden_logits(batch)
        targets = batch.columns["target"][batch.columns["hidden"].bool()]
        nats = F.cross_entropy(logits, targets, reduction="sum")
        terms = {"loss": Term(nats, weights["loss"])}
        terms |= aux_terms(weights, aux)
        correct = float(logits.detach().argmax(1).eq(targets).sum())
        metrics = {"loss": (float(nats.detach()), weights["loss"]), "accuracy": (correct, weights["loss"])}
        return ObjectiveOutput(terms, metrics), None

    def log_probabilities(self, batch: ExampleBatch) -> Float[Tensor, " N"]:
        """Return the log-probability of each hidden token, row by row, with gradients where they are on."""
        batch = batch.to(next(self.model.parameters()).device)
        targets = batch.columns["target"][batch.columns["hidden"].bool()]
        return self.hidden_logits(batch)[0].log_softmax(1).gather(1, targets[:, None])[:, 0]

    def with_own_answer(self, batch: ExampleBatch) -> ExampleBatch:
        """Return the batch with the likeliest tokens in its gaps as targets."""
        hidden, target = batch.columns["hidden"].bool(), batch.columns["target"]
        tokens = self.predict_batch(batch)[:, : self.tokenizer.size].argmax(1).to(target.device)
        return replace(batch, columns={**batch.columns, "target": target.masked_scatter(hidden, tokens)})

    def predict_batch(self, batch: ExampleBatch) -> Tensor:
        """Return the probability of each token at each hidden position, row by row (N, V).

        The model must be in evaluation mode.
        """
        with torch.inference_mode():
            return self.hidden_logits(batch.to(next(self.model.parameters()).device))[0].softmax(1)

    def preview(self, step: int) -> str | None:
        """Return a held-out sentence with gaps, and the same sentence with the model's tokens in the gaps."""
        if self.preview_examples is None:
            return None
        hidden = self.preview_examples.columns["hidden"].bool()
        filled = self.preview_examples.columns["target"].clone()
        filled[hidden] = self.predict_batch(self.preview_examples)[:, : self.tokenizer.size].argmax(1).cpu()
        row = slice(0, int(self.preview_examples.lengths["source"][0]))
        gaps = self._decode(self.preview_examples.columns["target"][0, row], hidden[0, row])
        return f"{gaps} -> {self._decode(filled[0, row], torch.zeros_like(hidden[0, row]))}"

    @abstractmethod
    def hidden_logits(self, batch: ExampleBatch) -> tuple[Float[Tensor, "N V"], dict[str, Tensor]]:
        """Return the logits at each hidden position, row by row, and `aux`."""

    def _decode(self, tokens: Tensor, hidden: Tensor) -> str:
        """Return the text of `tokens` on a single line, with gaps for hidden tokens and without special
        tokens."""
        assert isinstance(self.tokenizer, Tokenizer)
        text: list[bytes] = []
        for token, gap in zip(tokens.tolist(), hidden.tolist(), strict=True):
            piece = self.tokenizer.pieces[token] if token < self.tokenizer.size else b""
            text.append((b" _" if piece[:1].isspace() else b"_") if gap else piece)
        return " ".join(b"".join(text).decode(errors="replace").split())
