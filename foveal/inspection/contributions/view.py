"""The view `contributions` of a run: what of its input made the tokens of a text likely."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.core.whole_number import WholeNumber
from foveal.encoders.joint import JointEncoder
from foveal.generation.sampling import Sampling
from foveal.inspection.candidates.compute import sampled_text, searched_text
from foveal.inspection.chosen_input import ChosenInput, InputOptions
from foveal.inspection.contributions.compute import (
    BASELINES,
    Parts,
    prompt_contributions,
    source_contributions,
)
from foveal.inspection.panels import (
    Axis,
    Caption,
    ColoredText,
    Heatmap,
    ImageRow,
    Images,
    NamedArray,
    Panel,
    Tile,
)
from foveal.inspection.payload import Payload
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun
from foveal.inspection.text_writer import TextWriter, text_writer, token_label, why_no_text
from foveal.inspection.view import Ablation, View

TILE = 3.2
"""Inches of the image."""
CAVEAT = (
    "one part is replaced at a time: where two parts say the same, neither seems to matter. An input with a "
    "replaced part is unlike any in training, and another baseline gives other numbers"
)


@dataclass(frozen=True)
class ContributionsOptions(InputOptions):
    tokens: WholeNumber = 20
    """The largest number of tokens to write."""


class ContributionsResult(NamedTuple):
    """The contributions of the parts of an input to the tokens of the text that is written for it."""

    writer: TextWriter
    name: str
    tokens: tuple[int, ...]
    log_probability: float
    values: Float[np.ndarray, "n S"]
    parts: Parts

    @property
    def sums(self) -> Float[np.ndarray, " S"]:
        """The contribution of each part to the whole text."""
        return self.values.sum(0)

    def strongest(self) -> int:
        """Return the part whose replacement changes the log-probability of the text most."""
        return int(np.abs(self.sums).argmax())


@register_view("contributions")
class ContributionsView(View[ContributionsOptions]):
    summary = "How much likelier each token of a text is because of each part of the input."
    Options = ContributionsOptions
    progress = "parts replaced"

    def fits(self, run: InspectedRun) -> str:
        if isinstance(getattr(run.model, "encoder", None), JointEncoder):
            return "this view replaces parts of one source, and this run reads several"
        return why_no_text(run)

    def compute(
        self, run: InspectedRun, options: ContributionsOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        return contributions_payload(str(run.run.path), _contributions(run, options, log))

    def ablate(self, run: InspectedRun, options: ContributionsOptions, log: Log) -> tuple[Ablation, ...]:
        result = _contributions(run, options, log)
        part, before = result.strongest(), result.log_probability
        removed = f"{result.parts.names[part]!r} of the input ({BASELINES[result.parts.kind]} instead)"
        after = before - float(result.sums[part])
        return (Ablation(removed, "the text", before, after, len(result.tokens)),)


def _contributions(run: InspectedRun, options: ContributionsOptions, log: Log) -> ContributionsResult:
    """Write a text as `foveal generate` does, but without chance, and replace the parts of its input."""
    writer, name = text_writer(run, options, options.tokens, log)
    text = (
        searched_text(writer, writer.beam, writer.length_penalty, 1)
        if writer.beam
        else sampled_text(writer, Sampling(temperature=0.0), 1)
    )
    tokens = tuple(token.token for token in text.tokens)
    values, parts = (
        prompt_contributions(writer, tokens)
        if writer.chosen is None
        else source_contributions(run.model, writer, writer.chosen.batch, writer.chosen.source, tokens)
    )
    return ContributionsResult(writer, name, tokens, text.log_probability, values.cpu().numpy(), parts)


def contributions_payload(subject: str, result: ContributionsResult) -> Payload:
    """Return the map of tokens by parts, and the input colored by the sums."""
    parts, sums, part = result.parts, result.sums, result.strongest()
    written = result.writer.labels(result.tokens)
    reach = float(np.abs(result.values).max()) or 1.0
    axes = (
        Axis("token of the text", written),
        Axis("part of the input", tuple(map(token_label, parts.names))),
    )
    array = NamedArray(result.values, axes, "nats likelier because of the part")
    panels: list[Panel] = [Heatmap("", array, -reach, reach)]
    panels += _input_panels(result.writer.chosen, parts, sums)
    token = int((np.sign(sums[part]) * result.values[:, part]).argmax())
    text = result.writer.tokenizer.decode(t for t in result.tokens if t < result.writer.tokenizer.size)
    facts = (
        ("input", result.name),
        ("text", text),
        ("log-probability", f"{result.log_probability:.3f} nats"),
        ("strongest", f"{parts.names[part]!r}: {sums[part]:+.2f} nats, most to {written[token]!r}"),
        ("baseline", BASELINES[parts.kind]),
    )
    values: dict[str, Any] = {
        "run": subject,
        "tokens": [*result.writer.names(result.tokens)],
        "parts": [*parts.names],
        "baseline": BASELINES[parts.kind],
        "contributions": result.values.tolist(),
        "log_probability": result.log_probability,
    }
    title = f"{subject}: contributions, {result.name}"
    return Payload("contributions", subject, title, tuple(panels), CAVEAT, "exact", facts, values)


def _input_panels(chosen: ChosenInput | None, parts: Parts, sums: Float[np.ndarray, " S"]) -> list[Panel]:
    """Return the input, colored by the contributions to the whole text."""
    if parts.kind == "tokens":
        axes = Axis("sum", ("contribution to the whole text",)), Axis("token", parts.names)
        reach = float(np.abs(sums).max()) or 1.0
        return [ColoredText("", parts.names, NamedArray(sums[None], axes, "nats"), -reach, reach)]
    if parts.grid is None or chosen is None or chosen.image is None:
        return []
    heat = np.maximum(sums.reshape(parts.grid), 0.0)
    heat = heat / (heat.max() or 1.0)
    tiles = Tile(chosen.image), Tile(chosen.image, (Caption("what the text needs"),), heat=heat)
    return [Images("", (ImageRow(tiles),), TILE)]
