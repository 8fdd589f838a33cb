"""Sequence to sequence: an encoder reads a source of any kind, and a decoder generates the target."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.core.errors import UserError
from foveal.core.memory import Memory
from foveal.core.recompute import keeping_states
from foveal.core.result import ObjectiveOutput, Term
from foveal.core.runtime import at_least_float32
from foveal.core.state import State
from foveal.core.tap import listen
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import RaggedArray
from foveal.data.text.length_limit import LengthLimit
from foveal.data.text.special_tokens import SpecialTokens
from foveal.generation.beam_search import Hypothesis, beam_search
from foveal.generation.decoding_loop import generate
from foveal.generation.sampling import Sampling
from foveal.layers.blocks.moe import AuxLosses
from foveal.models.encoder import EncoderWithHead
from foveal.objectives.aux_terms import aux_terms
from foveal.objectives.preview import PreviewExamples
from foveal.objectives.stateless import StatelessObjective
from foveal.ops.attention.attention_map import AttentionMap, whole_weights
from foveal.ops.padding import sequence_mask

DOUBTFUL_MARGIN = 10
"""Tokens beyond twice the reference that a doubtful target may have."""


class AttentionMaps(NamedTuple):
    """Attention to a memory: the names of the heads, and the weights of each example.

    The name 2.1 is the first head of the second layer that reads the memory. The weights of an example are
    for its T tokens and for the S vectors of its memory.
    """

    heads: list[str]
    weights: list[Float[np.ndarray, "H T S"]]


class _CrossAttentionWeights:
    """The listener that keeps the weights of the first call of each layer that attends to the memory."""

    def __init__(self, head: nn.Module):
        self._layers = [layer for layer in head.modules() if getattr(layer, "attends_to_memory", False)]
        self._weights = dict[nn.Module, Tensor]()

    def wants(self, module: nn.Module, site: str) -> bool:
        return site == "weights" and module in self._layers and module not in self._weights

    def receive(self, module: nn.Module, site: str, value: Tensor | AttentionMap) -> None:
        self._weights[module] = whole_weights(value).float()

    def by_layer(self) -> list[Float[Tensor, "B H T S"]]:
        return [self._weights[layer] for layer in self._layers if layer in self._weights]


class SequenceToSequenceObjective(StatelessObjective):
    """`-sum_t log p(y_t | y_1 .. y_(t-1), source)` in nats over target tokens, which end with `eos`.

    Columns of a batch: `source`, `target` (with `eos`). `label_smoothing` is the fraction of the training
    target that is spread over the whole vocabulary (Szegedy et al. 2016, section 7); the metric `loss` is
    without label smoothing. `length_limit` bounds the number of generated tokens.
    """

    def __init__(
        self,
        model: EncoderWithHead,
        special_tokens: SpecialTokens,
        length_limit: LengthLimit,
        label_smoothing: float = 0.0,
        preview_examples: PreviewExamples | None = None,
    ):
        self.model, self.special_tokens, self.length_limit = model, special_tokens, length_limit
        self.label_smoothing, self.preview_examples = label_smoothing, preview_examples
        self.aux_names = sorted({*model.encoder.aux_names, *model.head.aux_names})

    def weights(self, batch: ExampleBatch) -> dict[str, float]:
        """Return the weight of each term, from the batch alone."""
        return {"loss": float(batch.tokens)} | dict.fromkeys(self.aux_names, float(len(batch.rows)))

    def __call__(self, batch: ExampleBatch, carry: State) -> tuple[ObjectiveOutput, State]:
        batch = batch.to(next(self.model.parameters()).device)
        targets, lengths = batch.columns["target"], batch.lengths["target"]
        memory, aux = self.model.encode(batch.columns, batch.lengths)
        with keeping_states(False):
            features, _, head_aux = self.teacher_forcing(memory, targets, lengths)
        scored = sequence_mask(lengths, targets.shape[1])
        smoothing = self.label_smoothing if self.model.training else 0.0
        losses = self.model.head.losses(features[scored], targets[scored], smoothing)
        weights = self.weights(batch)
        terms = {"loss": Term(losses.label_smoothed, weights["loss"])} | aux_terms(weights, aux, head_aux)
        return ObjectiveOutput(terms, {"loss": (float(losses.nll), weights["loss"])}), None

    def teacher_forcing(
        self, memory: Memory, targets: Int[Tensor, "B T"], lengths: Int[Tensor, " B"]
    ) -> tuple[Float[Tensor, "B T D"], State, AuxLosses]:
        """Return the features that predict each target token, the head's final state, and `aux`."""
        inputs = F.pad(targets[:, :-1], (1, 0), value=self.special_tokens.bos)
        return self.model.head(inputs, self.model.head.init_state(memory, len(targets)), lengths)

    def log_probabilities(self, batch: ExampleBatch) -> Float[Tensor, " N"]:
        """Return the log-probability of each target token, row by row, with gradients where they are on."""
        batch = batch.to(next(self.model.parameters()).device)
        targets, lengths = batch.columns["target"], batch.lengths["target"]
        memory, _ = self.model.encode(batch.columns, batch.lengths)
        features, _, _ = self.teacher_forcing(memory, targets, lengths)
        scored = sequence_mask(lengths, targets.shape[1])
        logits = at_least_float32(self.model.head.project(features[scored]))
        return logits.log_softmax(1).gather(1, targets[scored][:, None])[:, 0]

    def with_own_answer(self, batch: ExampleBatch) -> ExampleBatch:
        """Return the batch with the model's own greedy targets."""
        rows = [np.array(best.tokens, np.int64) for best, *_ in self.beam_decode(batch)]
        targets, lengths = RaggedArray.from_rows(rows).padded(np.arange(len(rows)))
        columns = {**batch.columns, "target": torch.from_numpy(targets)}
        return replace(batch, columns=columns, lengths={**batch.lengths, "target": torch.from_numpy(lengths)})

    def memory(self, batch: ExampleBatch) -> Memory:
        """Return the memory of the sources. The model must be in evaluation mode."""
        batch = batch.to(next(self.model.parameters()).device)
        with torch.inference_mode():
            return self.model.encode(batch.columns, batch.lengths)[0]

    def beam_decode(
        self, batch: ExampleBatch, beam: int = 1, best: int = 1, alpha: float = 0.0
    ) -> list[list[Hypothesis]]:
        """Return the `best` targets of each source by beam search, likeliest first. A beam of 1 is greedy.

        Of a batch with references, doubtful targets end at about twice the length of the reference. An
        untrained model, which never ends by itself, would take longer to evaluate than to train.
        """
        prompts = [[self.special_tokens.bos]] * len(batch.rows)
        references = batch.lengths.get("target")
        doubtful = None if references is None else (2 * references + DOUBTFUL_MARGIN).tolist()
        return beam_search(
            self.model.head,
            prompts,
            self.limits(batch),
            beam=beam,
            best=best,
            alpha=alpha,
            memory=self.memory(batch),
            end_tokens={self.special_tokens.eos},
            doubtful_limits=doubtful,
        )

    def sample_decode(
        self, batch: ExampleBatch, texts: Sequence[str], sampling: Sampling, samples: int = 1
    ) -> list[list[Hypothesis]]:
        """Return `samples` targets of each source, sampled token by token.

        The noise is a function of the source's text.
        """
        tokens: list[list[int]] = [[] for _ in range(len(texts) * samples)]
        totals, sampled = [0.0] * len(tokens), [Hypothesis((), 0.0, 0.0, "limit")] * len(tokens)
        prompts, memory, end = (
            [[self.special_tokens.bos]] * len(texts),
            self.memory(batch),
            {self.special_tokens.eos},
        )
        for row, token, log_prob, reason in generate(
            self.model.head,
            prompts,
            texts,
            self.limits(batch),
            sampling,
            samples=samples,
            memory=memory,
            end_tokens=end,
        ):
            tokens[row].append(token)
            totals[row] += log_prob
            if reason is not None:
                ended: Literal["end", "limit"] = "end" if reason == "end" else "limit"
                sampled[row] = Hypothesis(tuple(tokens[row]), totals[row], totals[row], ended)
        return [sampled[row : row + samples] for row in range(0, len(sampled), samples)]

    def limits(self, batch: ExampleBatch) -> list[int]:
        """Return the maximum number of tokens of each target."""
        # Without lengths all sources have one size.
        lengths = batch.lengths.get("source", torch.zeros(len(batch.rows)))
        return [self.length_limit.for_source(length) for length in lengths.int().tolist()]

    def attention_maps(self, batch: ExampleBatch, generated: list[list[int]]) -> AttentionMaps:
        """Return the attention weights of each head of each layer to the memory, for each generated token.

        Raises: UserError: the model has no attention to its memory.
        """
        targets, lengths = RaggedArray.from_rows([np.array(tokens) for tokens in generated]).padded(
            np.arange(len(generated))
        )
        inputs = F.pad(torch.from_numpy(targets[:, :-1]), (1, 0), value=self.special_tokens.bos)
        maps = _CrossAttentionWeights(self.model.head)
        with torch.inference_mode(), listen(maps):
            memory = self.memory(batch)
            self.model.head(
                inputs.to(memory.vectors.device), self.model.head.init_state(memory, len(generated))
            )
        layers = maps.by_layer()
        if not layers:
            raise UserError("this model reads only a summary of the source, so there is no attention to show")
        heads = [f"{1 + i}.{1 + h}" for i, layer in enumerate(layers) for h in range(layer.shape[1])]
        positions = torch.arange(memory.mask.shape[1], device=memory.mask.device)
        last = (memory.mask * (1 + positions)).amax(1)  # joined memories may have gaps before it
        rows = zip(torch.cat(layers, 1).cpu().numpy(), lengths.tolist(), last.tolist(), strict=True)
        return AttentionMaps(heads, [row[:, :T, :S] for row, T, S in rows])

    def preview(self, step: int) -> str | None:
        """Return a few held-out sources, each with the target that the current model generates."""
        if self.preview_examples is None:
            return None
        generated = self.beam_decode(self.preview_examples.batch)
        return self.preview_examples.text(
            [self.strip_special_tokens(hypotheses[0]) for hypotheses in generated]
        )

    def strip_special_tokens(self, hypothesis: Hypothesis) -> list[int]:
        """Return the tokens without special tokens: `eos`, and any others that an untrained model may
        generate."""
        return [token for token in hypothesis.tokens if token < self.special_tokens.size]
