"""The view `selectivity` of a run: what its states read, and how long they remember."""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack

import numpy as np
import torch
from jaxtyping import Float

from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.data.core.split_data import evenly_spaced
from foveal.inspection.chosen_input import ChosenInput, InputOptions, choose_input, why_no_input
from foveal.inspection.panels import Axis, ColoredText, Lines, NamedArray, Panel, Series, Table
from foveal.inspection.payload import Payload
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun
from foveal.inspection.selectivity.compute import (
    LayerMemory,
    SelectiveMixer,
    decaying_mixers,
    layer_memories,
)
from foveal.inspection.text_writer import token_label
from foveal.inspection.view import Ablation, View

REACH, TOKENS_SHOWN, LAYERS_SHOWN = 1.5, 12, 2
"""Powers of two of the step size at the ends of the colors, tokens of the table, and layers of the text."""
CAVEAT = (
    "a half-life says how long a state keeps what it has, not that the outputs use it; where steps depend on "
    "the input, half-lives are those of the mean step, and a single large step may empty a state"
)


@register_view("selectivity")
class SelectivityView(View[InputOptions]):
    summary = "How long the states of Mamba, S5 or RWKV remember, and which tokens Mamba writes into them."
    Options = InputOptions
    progress = "inputs read"

    def fits(self, run: InspectedRun) -> str:
        if not decaying_mixers(run.model):
            return "no layer of this run has states with known decays (Mamba, S5, RWKV)"
        return why_no_input(run)

    def compute(
        self, run: InspectedRun, options: InputOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        chosen = choose_input(run, options, log)
        return selectivity_payload(str(run.run.path), chosen, layer_memories(run.model, chosen))

    def ablate(self, run: InspectedRun, options: InputOptions, log: Log) -> tuple[Ablation, ...]:
        """Let all steps be as large as the mean step of their channel."""
        chosen, mixers = choose_input(run, options, log), decaying_mixers(run.model)
        before, count = chosen.total(), 0
        with ExitStack() as stack:
            for layer in layer_memories(run.model, chosen):
                mixer = mixers[layer.path]
                if isinstance(mixer, SelectiveMixer) and layer.step_sizes is not None:
                    means = torch.from_numpy(layer.step_sizes.mean(0))
                    stack.enter_context(mixer.constant_steps(means))
                    count += 1
            after = chosen.total()
        removed = f"the selection of {count} layers: each step is the mean of its channel"
        return (Ablation(removed, "the reference", before, after, len(chosen.target)),) if count else ()


def selectivity_payload(subject: str, chosen: ChosenInput, layers: Sequence[LayerMemory]) -> Payload:
    """Return the half-lives of all states, the text by step size, and the tokens with the largest steps."""
    panels: list[Panel] = [_curves(layers)]
    facts = [("input", chosen.name)]
    for layer in layers:
        middle, longest = np.median(layer.half_lives), layer.half_lives.max()
        text = f"half-life {_tokens(middle)} in the middle, {_tokens(longest)} at most"
        if layer.step_sizes is not None:
            text += f"; step sizes vary by {layer.variation().mean():.2f} of their mean"
        facts.append((layer.path, text))
    selective = [layer for layer in layers if layer.step_sizes is not None]
    if selective:
        panels += [_text(chosen, selective), _largest(chosen, selective)]
    else:
        facts.append(("selection", "none: these half-lives are the same for every input"))
    values = {
        "run": subject,
        "layers": [
            {
                "layer": layer.path,
                "half_lives": layer.half_lives.tolist(),
                "step_sizes": None if layer.step_sizes is None else layer.step_sizes.mean(1).tolist(),
                "variation": None if layer.step_sizes is None else layer.variation().tolist(),
            }
            for layer in layers
        ],
    }
    title = f"{subject}: selectivity, {chosen.name}"
    return Payload("selectivity", subject, title, tuple(panels), CAVEAT, "exact", tuple(facts), values)


def _tokens(half_life: float) -> str:
    return f"{half_life:,.3g} tokens"


def _curves(layers: Sequence[LayerMemory]) -> Lines:
    series = []
    for number, layer in enumerate(layers):
        ordered = np.sort(layer.half_lives.flatten())
        shares = (np.arange(len(ordered)) + 0.5) / len(ordered)
        series.append(Series(layer.path, shares.tolist(), ordered.tolist(), color=number))
    return Lines(
        "half-life of states",
        tuple(series),
        "share of the states of a layer",
        "tokens",
        log_y=True,
        size=(5.2, 3.4),
    )


def _relative(layer: LayerMemory) -> Float[np.ndarray, " T"]:
    """Return the logarithm to base 2 of each token's step size, relative to the mean of each channel."""
    assert layer.step_sizes is not None
    relative: Float[np.ndarray, " T"] = np.log2((layer.step_sizes / layer.step_sizes.mean(0)).mean(1))
    return relative


def _text(chosen: ChosenInput, layers: Sequence[LayerMemory]) -> ColoredText:
    """Return the text by the steps of some layers, and of the channel of each that selects most."""
    rows, names = [], list[str]()
    for number in evenly_spaced(len(layers), LAYERS_SHOWN):
        layer = layers[number]
        assert layer.step_sizes is not None
        channel = int(layer.variation().argmax())
        steps = layer.step_sizes[:, channel]
        rows += [_relative(layer), np.log2(steps / steps.mean())]
        names += [
            f"{layer.path}, mean of its channels",
            f"{layer.path}, channel {channel}, its most selective",
        ]
    values = np.stack(rows)
    tokens = chosen.position_names(values.shape[1])
    array = NamedArray(
        values, (Axis("layer", tuple(names)), Axis("token", tokens)), "log2 of step by its mean"
    )
    return ColoredText("step sizes: red writes, blue passes by", tokens, array, -REACH, REACH)


def _largest(chosen: ChosenInput, layers: Sequence[LayerMemory]) -> Table:
    """Return the tokens with the largest steps, in the mean over layers and places."""
    mean = np.mean([2.0 ** _relative(layer) for layer in layers], axis=0)
    places = defaultdict[str, list[float]](list)
    for token, size in zip(chosen.position_names(len(mean)), mean.tolist(), strict=True):
        places[token].append(size)
    ordered = sorted(places, key=lambda token: -float(np.mean(places[token])))
    rows = tuple(
        (token_label(token), f"{len(places[token]):,}", f"{np.mean(places[token]):.2f}")
        for token in ordered[:TOKENS_SHOWN]
    )
    return Table("the largest steps", ("token", "times", "step by its mean"), rows)
