"""The view `trajectories` of a language model: how the state of a layer moves through a text."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback, no_progress
from foveal.data.core.split_data import evenly_spaced
from foveal.heads.decoder_lm import DecoderLM
from foveal.inspection.panels import Lines, Series
from foveal.inspection.payload import Payload
from foveal.inspection.read_states import bounded_values, read_chunks, state_names
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun, held_out_examples
from foveal.inspection.trajectories.compute import PrincipalAxes, principal_axes
from foveal.inspection.view import View

MOST_TOKENS, ROWS = 20_000, 16
"""Tokens of held-out text whose states give the axes, and the rows that are read side by side."""
SHOWN_TOKENS, MOST_NAMES, CLOUD = 32, 32, 1000
"""Tokens of the path, tokens that are written beside it, and states of held-out text behind it."""
CAVEAT = (
    "a plane shows only a part of the variance, and states that are far apart may look near in it; the axes "
    "are those of held-out text"
)


@dataclass(frozen=True)
class TrajectoriesOptions:
    data: str | None = None
    """Other text than the run's held-out part."""
    text: str | None = None
    """A text in place of the first held-out tokens."""
    layer: str | None = None
    """The state, such as stack.blocks.0.mixer/h; that of the last layer if not given."""


@register_view("trajectories")
class TrajectoriesView(View[TrajectoriesOptions]):
    summary = "The path of a layer's state through a text, on its two principal axes."
    Options = TrajectoriesOptions
    progress = "parts of the text read"

    def fits(self, run: InspectedRun) -> str:
        fitting = isinstance(run.model, DecoderLM)
        return "" if fitting else f"this view needs a language model (task {run.task.name})"

    def compute(
        self, run: InspectedRun, options: TrajectoriesOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        layer = _layer(run, options.layer)
        part, split = held_out_examples(run, options.data, log)
        ids = np.asarray(part[:MOST_TOKENS], np.int64)
        if not len(ids):
            raise UserError(f"{split}: no tokens; name another text with --data")
        rows = min(ROWS, len(ids))
        tokens = torch.from_numpy(ids[: len(ids) // rows * rows]).view(rows, -1)
        states = _read(run, tokens, layer, progress)
        axes = principal_axes([states])
        shown = tokens[0, :SHOWN_TOKENS]
        path = states[0, :SHOWN_TOKENS]
        if options.text is not None:
            typed = np.asarray(run.processor.encode(options.text), np.int64)
            if not len(typed):
                raise UserError("--text: no tokens; give a text")
            if len(typed) > SHOWN_TOKENS:
                log(f"--text has {len(typed):,} tokens; the path is that of the first {SHOWN_TOKENS}")
            shown = torch.from_numpy(typed[:SHOWN_TOKENS])
            path = _read(run, shown[None], layer, no_progress)[0]
        names = [run.processor.decode([token]) for token in shown.tolist()]
        return _payload(str(run.run.path), layer, axes, path, states.flatten(0, 1), names)


def _layer(run: InspectedRun, layer: str | None) -> str:
    """Return the name of the state.

    Raises: UserError: there is no such state.
    """
    names = state_names(run.model)
    if layer is not None and layer not in names:
        raise UserError(f"--layer {layer}: {run.run.path} has no such layer; it has {', '.join(names)}")
    return layer or names[-1]


def _read(
    run: InspectedRun, tokens: Int[Tensor, "R T"], layer: str, progress: ProgressCallback
) -> Float[Tensor, "R T U"]:
    """Return the state after each token."""
    tokens = tokens.to(next(run.model.parameters()).device)
    chunks = read_chunks(run.model, tokens, run.config.data.context_length, [layer], progress)
    return bounded_values(layer, torch.cat([chunk.states[layer] for chunk in chunks], 1)).float().cpu()


def _payload(
    subject: str,
    layer: str,
    axes: PrincipalAxes,
    path: Float[Tensor, "T U"],
    others: Float[Tensor, "N U"],
    names: list[str],
) -> Payload:
    """Return the path over a cloud of states of held-out text, and the variance along the axes."""
    cloud = others[evenly_spaced(len(others), CLOUD)]
    x, y = _coordinates(axes, path)
    written = {*evenly_spaced(len(names), MOST_NAMES)}
    labels = tuple(_visible(name) if number in written else "" for number, name in enumerate(names))
    fractions = (100 * axes.fractions).tolist()
    plane = Lines(
        "the line is the text, the points are other states",
        (
            Series("held-out states", *_coordinates(axes, cloud), "cloud", 3),
            Series("the text", x, y, "dots", labels=labels),
            Series("its start", x[:1], y[:1], "ring", 1),
        ),
        f"first axis, {fractions[0]:.1f} % of the variance",
        f"second axis, {sum(fractions[1:2]):.1f} %",
        size=(9.0, 6.0),
        equal=True,
    )
    counts = range(1, len(fractions) + 1)
    total = Lines(
        "variance along the first axes",
        (Series("share", counts, np.cumsum(fractions).tolist()),),
        "axes",
        "%",
        limits=(0.0, 103.0),
    )
    first = sum(fractions[:2])
    needed = int((axes.fractions.cumsum(0) < 0.9).sum()) + 1
    facts = (
        ("state", f"{layer}, {len(fractions):,} units"),
        ("variance", f"{first:.1f} % along the two axes; {needed:,} axes have 90 %"),
    )
    values = {"run": subject, "layer": layer, "shares": axes.fractions.tolist(), "tokens": names}
    title = f"{subject}: the path of {layer}"
    return Payload("trajectories", subject, title, (plane, total), CAVEAT, "exact", facts, values)


def _coordinates(axes: PrincipalAxes, states: Float[Tensor, "T U"]) -> tuple[list[float], list[float]]:
    """Return the coordinates on the first two axes; a single unit has one axis."""
    x, *rest = axes.project(states, 2).T.tolist()
    return x, rest[0] if rest else [0.0] * len(x)


def _visible(token: str) -> str:
    return token.replace(" ", "␣").replace("\n", "⏎")
