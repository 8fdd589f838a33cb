"""The view `attention` of a run: where each head of each layer reads."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.core.whole_number import WholeNumber
from foveal.inspection.attention.compute import HeadStatistics, MapSummary, summarize_layer
from foveal.inspection.attention.layers import (
    AttentionLayer,
    attending_modules,
    capture_attention,
    find_layer,
)
from foveal.inspection.attention.panels import (
    MOST_GRID_CELLS,
    grid_panels,
    head_panel,
    layers_over_image,
    table_panel,
    words_of_layer,
    words_over_image,
)
from foveal.inspection.chosen_input import ChosenInput, InputOptions, choose_input, why_no_input
from foveal.inspection.panels import Images, Panel
from foveal.inspection.payload import Exactness, Payload
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun
from foveal.inspection.view import Ablation, View

CAVEAT = (
    "weights say from where a layer mixed values, not why the model decided (Jain and Wallace 2019): a head "
    "with clear weights may change nothing, which --control measures; masked cells are gray"
)
OUTSTANDING = 0.5
"""The mean weight from which a head is said to look at a position."""
HABITS = {
    "previous": "looks at the previous token",
    "itself": "looks at its own position",
    "first": "looks at the first position",
    "induction": "looks at what followed the same token before",
}


@dataclass(frozen=True)
class AttentionOptions(InputOptions):
    layer: str | None = None
    """The layer that is shown: its number, counted from 0, or its path or a part of it; if not given, that of
    the head with the largest weights, among those that read the source for a target if there are any."""
    head: WholeNumber | None = None
    """The head that is shown, counted from 0; the one with the largest weights if not given."""


@register_view("attention")
class AttentionView(View[AttentionOptions]):
    summary = "Where each head of each layer reads: its weights, and what it does, in numbers."
    Options = AttentionOptions

    def fits(self, run: InspectedRun) -> str:
        if not attending_modules(run.model):
            return "the model has none of Foveal's attention layers"
        return why_no_input(run)

    def compute(
        self, run: InspectedRun, options: AttentionOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        chosen = choose_input(run, options, log)
        layers = capture_attention(run.model, chosen)
        summaries = [summarize_layer(layer, MOST_GRID_CELLS) for layer in layers]
        number, head, reason = choose_head(layers, summaries, options)
        panels = (
            *_over_image(layers, number, head, chosen),
            head_panel(layers[number], head),
            *grid_panels(layers, summaries),
            table_panel(layers, summaries),
        )
        facts = (
            ("input", chosen.name),
            ("shown", f"head {head} of layer {number} ({layers[number].path}){reason}"),
            *outstanding_heads(layers, summaries),
            ("weights", _exactness(layers)),
        )
        path = str(run.run.path)
        exactness: Exactness = "recomputed" if any(layer.is_recomputed for layer in layers) else "exact"
        shown = {"layer": number, "head": head}
        values = {"input": chosen.name, "shown": shown, "heads": [*_heads_json(layers, summaries)]}
        title = f"{path}: attention, {chosen.name}"
        return Payload("attention", path, title, panels, CAVEAT, exactness, facts, values)

    def control_options(self, options: AttentionOptions, payload: Payload) -> AttentionOptions:
        shown = payload.values["shown"]
        return replace(options, layer=str(shown["layer"]), head=shown["head"])

    def ablate(self, run: InspectedRun, options: AttentionOptions, log: Log) -> tuple[Ablation, ...]:
        """Return what it costs to set the output of the shown head to zero."""
        chosen = choose_input(run, options, log)
        layers = capture_attention(run.model, chosen)
        summaries = [summarize_layer(layer, MOST_GRID_CELLS) for layer in layers]
        number, head, _ = choose_head(layers, summaries, options)
        path = layers[number].path
        module = attending_modules(run.model)[path]
        before, handle = chosen.total(), module.without_head(head)
        try:
            after = chosen.total()
        finally:
            handle.remove()
        outcome = "the model's own answer" if chosen.reference is None else "the reference"
        removed = f"head {head} of layer {number} ({path})"
        return (Ablation(removed, outcome, before, after, len(chosen.target)),)


def choose_head(
    layers: Sequence[AttentionLayer], summaries: Sequence[MapSummary], options: AttentionOptions
) -> tuple[int, int, str]:
    """Return the layer and the head that are shown, by number, and why, where the user named none.

    Raises: UserError: there is no such layer or head.
    """
    chosen: Sequence[int] = range(len(layers))
    reason = ""
    if options.layer is not None:
        named = find_layer(layers, options.layer)
        chosen = [layers.index(named)]
    else:
        chosen = [n for n, layer in enumerate(layers) if layer.kind == "cross"] or chosen
    heads = [(n, h, summaries[n].statistics[h]) for n in chosen for h in range(layers[n].shape[0])]
    if options.head is not None:
        heads = [each for each in heads if each[1] == options.head]
        if not heads:
            counts = layers[chosen[0]].shape[0]
            raise UserError(f"--head {options.head}: the layer has {counts} heads, counted from 0")
    elif len(heads) > 1:
        reason = ", the one with the largest weights; --layer and --head name others"
    # A head that mostly reads the first position rests (Xiao et al. 2024), so it is not shown unasked.
    number, head, _ = max(heads, key=lambda each: (not each[2].first > OUTSTANDING, each[2].largest))
    return number, head, reason


def outstanding_heads(
    layers: Sequence[AttentionLayer], summaries: Sequence[MapSummary]
) -> Iterator[tuple[str, str]]:
    """Yield the heads that look at a position most, and the heads with most and least entropy."""
    heads = [
        (f"head {head} of layer {number}", limit, statistics)
        for number, (layer, summary) in enumerate(zip(layers, summaries, strict=True))
        for head, (statistics, limit) in enumerate(zip(summary.statistics, summary.max_entropy, strict=True))
        if layer.shape[2] > 1
    ]
    for habit, words in HABITS.items():
        own = [(getattr(each, habit), name) for name, _, each in heads if getattr(each, habit) > OUTSTANDING]
        if own:
            share, name = max(own)
            more = f", and {len(own) - 1} more" if len(own) > 1 else ""
            yield habit, f"{name} {words}: {share:.2f} of its weight{more}"
    if len(heads) > 1:
        entropies = [(each.entropy, name, limit) for name, limit, each in heads]
        for label, (entropy, name, limit) in zip(
            ("sharpest", "broadest"), (min(entropies), max(entropies)), strict=True
        ):
            yield label, f"{name}: entropy {entropy:.2f} of at most {limit:.2f} nats"


def _exactness(layers: Sequence[AttentionLayer]) -> str:
    deviations = [layer.deviation for layer in layers if layer.is_recomputed]
    if not deviations:
        return "as the layers used them"
    return f"from queries and keys; the outputs of the kernel deviate by {max(deviations):.1e} at most"


def _over_image(
    layers: Sequence[AttentionLayer], number: int, head: int, chosen: ChosenInput
) -> tuple[Panel, ...]:
    """Return the panels over the input's image: word by word, and by head."""
    layer, image = layers[number], chosen.image
    if image is None:
        return ()
    if layer.kind == "cross" and layer.grid is not None:
        words = words_of_layer(layer, head)
        rows = words_over_image(words.weights[0], words.target, layer.grid, image)
        return (Images(f"where head {head} of layer {number} looks for each word", rows),)
    return layers_over_image(layers, image)


def _heads_json(
    layers: Sequence[AttentionLayer], summaries: Sequence[MapSummary]
) -> Iterator[dict[str, Any]]:
    for number, (layer, summary) in enumerate(zip(layers, summaries, strict=True)):
        for head, statistics in enumerate(summary.statistics):
            place = {"layer": number, "path": layer.path, "kind": layer.kind, "head": head}
            yield place | HeadStatistics._asdict(statistics)
