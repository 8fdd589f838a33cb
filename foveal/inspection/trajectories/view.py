"""The view `trajectories` of a language model: how the state of a layer moves through a text."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback, no_progress
from foveal.core.terminal_text import WHITE_SPACE_SIGNS
from foveal.data.core.split_data import evenly_spaced
from foveal.inspection.panels import Lines, Series
from foveal.inspection.payload import Payload
from foveal.inspection.read_states import (
    bounded_values,
    check_state_name,
    held_out_rows,
    read_chunks,
    state_names,
    why_no_states,
)
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun
from foveal.inspection.trajectories.compute import PrincipalAxes, principal_axes
from foveal.inspection.view import View

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
        return why_no_states(run)

    def compute(
        self, run: InspectedRun, options: TrajectoriesOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        check_state_name(run, options.layer, state_names(run.model))
        layer = options.layer or state_names(run.model)[-1]
        tokens, _ = held_out_rows(run, options.data, log)
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
    return token.translate(WHITE_SPACE_SIGNS)
