"""The view `word-saliency` of a run: the tokens of a text that the logit of a class depends on."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.core.runtime import at_least_float32
from foveal.core.whole_number import WholeNumber
from foveal.encoders.text import TextEncoder
from foveal.inspection.chosen_input import ChosenInput, InputOptions, choose_input, why_no_input
from foveal.inspection.image_gradients import frozen, label_number
from foveal.inspection.panels import Axis, ColoredText, NamedArray
from foveal.inspection.payload import Payload
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun
from foveal.inspection.view import Ablation, View
from foveal.inspection.word_saliency.compute import (
    TokenScore,
    gradient_times_embedding,
    removal,
    scores_without,
)
from foveal.objectives.classification import ClassificationObjective
from foveal.objectives.predicted_labels import at_temperature

ABLATED_SHARE, RANDOM_SETS = 0.1, 20
"""The share of tokens that is removed, and random sets of as many for comparison."""
MAX_TOKENS = 512
"""Most tokens: each is removed once."""
METHODS = ("gradient x embedding", "removal")
CAVEAT = (
    "removal sets the embedding to 0, which no text has, and removes one token at a time: tokens that say "
    "the same hide each other; the gradient is only the first-order part of it"
)


@dataclass(frozen=True)
class WordSaliencyOptions(InputOptions):
    label: str | None = None
    """The class; the predicted one if not given."""
    seed: WholeNumber = 0
    """The seed of the random tokens for comparison."""


class _Text(NamedTuple):
    """A text and the class whose logit is explained."""

    chosen: ChosenInput
    embedding: nn.Module
    logits: Float[Tensor, " K"]
    label: int

    def score(self, model: nn.Module, log_probability: bool) -> TokenScore:
        """Return the logit, or the log-probability, of the class of copies of the text."""

        def run(count: int) -> Float[Tensor, " B"]:
            logits = _logits(model, self.chosen, count)
            return (logits.log_softmax(1) if log_probability else logits)[:, self.label]

        return run


@register_view("word-saliency")
class WordSaliencyView(View[WordSaliencyOptions]):
    summary = "The tokens of a text that the logit of a class depends on."
    Options = WordSaliencyOptions

    def fits(self, run: InspectedRun) -> str:
        is_classifier = isinstance(run.objective, ClassificationObjective)
        if is_classifier and isinstance(getattr(run.model, "encoder", None), TextEncoder):
            return why_no_input(run)
        return f"this view needs a network that labels texts (task {run.task.name})"

    def compute(
        self, run: InspectedRun, options: WordSaliencyOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        with frozen(run.model):
            text, path = _choose(run, options, log), str(run.run.path)
            label, tokens = run.objective.labels[text.label], text.chosen.source
            score = text.score(run.model, log_probability=False)
            gradient = gradient_times_embedding(score, text.embedding)
            drops = removal(score, text.embedding, len(tokens), gradient.device)
        values = torch.stack([gradient, drops]).cpu().double().numpy()
        largest = float(np.abs(values).max()) or 1.0
        axes = Axis("method", METHODS), Axis("token")
        array = NamedArray(values, axes, f"part of the logit of {label}")
        predicted = run.objective.labels[int(text.logits.argmax())]
        logit, probability = float(text.logits[text.label]), float(text.logits.softmax(0)[text.label])
        strongest = [int(row) for row in np.argsort(-values[1], kind="stable")[:3]]
        facts = [
            ("text", text.chosen.name),
            ("class", f"{label}: logit {logit:.3f}, probability {100 * probability:.1f} %"),
            ("predicted", predicted),
            ("strongest", ", ".join(f"{tokens[t].strip()!r} {values[1, t]:+.3f}" for t in strongest)),
        ]
        if text.chosen.reference is not None:
            facts.append(("correct", text.chosen.reference))
        numbers: dict[str, Any] = {"run": path, "label": label, "predicted": predicted, "logit": logit}
        numbers |= {"probability": probability, "text": text.chosen.name}
        title = f"{text.chosen.name}: what adds to the logit of {label}"
        panels = (ColoredText("", tokens, array, -largest, largest),)
        return Payload("word-saliency", path, title, panels, CAVEAT, "exact", tuple(facts), numbers)

    def ablate(self, run: InspectedRun, options: WordSaliencyOptions, log: Log) -> tuple[Ablation, ...]:
        """Remove the tokens with the largest gradient x embedding, and as many random ones."""
        with frozen(run.model):
            text = _choose(run, options, log)
            label, count = run.objective.labels[text.label], len(text.chosen.source)
            gradient = gradient_times_embedding(text.score(run.model, False), text.embedding).cpu()
            most = max(1, round(ABLATED_SHARE * count))
            draws = torch.rand(RANDOM_SETS, count, generator=torch.Generator().manual_seed(options.seed))
            ranked = torch.cat([gradient[None], draws])
            removed = torch.zeros(RANDOM_SETS + 2, count, dtype=torch.bool)
            removed[:-1].scatter_(1, ranked.topk(most).indices, True)  # the last row removes nothing
            score = text.score(run.model, log_probability=True)
            device = text.logits.device
            first, *random, before = scores_without(score, text.embedding, removed.to(device)).tolist()
        share = f"{most} of {count} tokens"
        return (
            Ablation(f"the {share} with the largest gradient x embedding", label, before, first),
            Ablation(f"{share} at random (mean of {RANDOM_SETS})", label, before, sum(random) / len(random)),
        )


def _choose(run: InspectedRun, options: WordSaliencyOptions, log: Log) -> _Text:
    """Return the text and the class.

    Raises: UserError: there is no such text or label, or the text is too long.
    """
    chosen = choose_input(run, options, log)
    if len(chosen.source) > MAX_TOKENS:
        raise UserError(
            f"{chosen.name}: {len(chosen.source):,} tokens, and this view removes {MAX_TOKENS} at most, one "
            "after the other: choose a shorter text"
        )
    with torch.no_grad():
        logits = _logits(run.model, chosen, 1)[0]
    labels = run.objective.labels
    label = int(logits.argmax()) if options.label is None else label_number(labels, options.label)
    return _Text(chosen, run.model.encoder.embedding, logits, label)


def _logits(model: nn.Module, chosen: ChosenInput, count: int) -> Float[Tensor, "B K"]:
    """Return the logits of copies of a text."""
    device = next(model.parameters()).device
    tokens = chosen.batch.columns["source"].to(device).expand(count, -1)
    lengths = chosen.batch.lengths.get("source")
    logits = model(tokens, None if lengths is None else lengths.to(device).expand(count))
    return at_temperature(at_least_float32(logits), model)
