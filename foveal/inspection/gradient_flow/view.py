"""The view `gradient-flow` of language models: the gradient of the last step's loss for earlier states."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.core.terminal_text import counted
from foveal.core.whole_number import WholeNumber
from foveal.inspection.capture.modules import published_paths
from foveal.inspection.gradient_flow.compute import (
    Spectrum,
    jacobian_norms,
    relative_norms,
    spectrum,
    state_gradients,
)
from foveal.inspection.panels import Lines, Panel, Series
from foveal.inspection.payload import Payload
from foveal.inspection.read_states import check_state_name, read_chunks, state_names, why_no_states
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun, held_out_examples
from foveal.inspection.view import View
from foveal.layers.mixers.recurrent_cells import ElmanCell

EXAMPLES, JACOBIAN_EXAMPLES = 32, 4
"""Rows of text, and those whose Jacobians are multiplied."""
BAND = (0.1, 0.9)
"""The quantiles over examples between which the band lies."""
SMALL = 0.01
"""The part of the gradient at the last step below which it is called small."""
WIDE, SQUARE = (6.4, 3.6), (3.6, 3.6)
"""Inches of the panels."""
CAVEAT = (
    "a small gradient says that this loss hardly depends on that step with these weights, not that a "
    "network could not learn to; states of different kinds are compared by their decay, not by their height"
)


@dataclass(frozen=True)
class GradientFlowOptions:
    data: str | None = None
    """Other text than the run's held-out part."""
    with_: tuple[str, ...] | None = None
    """Another run, drawn over this one; may be given several times."""
    layer: str | None = None
    """The state, such as stack.blocks.0.mixer/h; all states of the lowest layer if not given."""
    steps: WholeNumber = 100
    """Steps of each example, fewer where the model reads no more."""


class _Flow(NamedTuple):
    """The norms of the gradient for a state, over that at the last step."""

    run: str
    state: str
    norms: Float[np.ndarray, "B T"]

    @property
    def median(self) -> Float[np.ndarray, " T"]:
        return np.median(self.norms, 0)

    @property
    def reach(self) -> int | None:
        """The first distance at which the median is small; None if there is none."""
        small = np.flatnonzero(self.median < SMALL)
        return int(small[0]) if len(small) else None

    def fact(self) -> tuple[str, str]:
        steps = self.norms.shape[1] - 1
        text = f"below {SMALL:.0%} of the last step's gradient"
        far = f"{self.median[-1]:.2g} of it {steps:,} steps back"
        when = f"never {text}" if self.reach is None else f"{text} after {counted(self.reach, 'step')}"
        return f"{self.run} {self.state}", f"{when}; {far}"


class _Recurrence(NamedTuple):
    """The recurrent weights of a vanilla RNN, and the norms of the products of its Jacobians."""

    run: str
    layer: str
    spectrum: Spectrum
    norms: Float[np.ndarray, "B T"]

    def fact(self) -> tuple[str, str]:
        """A norm above 1 is necessary for a gradient that explodes, but not sufficient."""
        radius, norm = self.spectrum.radius, self.spectrum.norm
        meaning = "the gradient must vanish" if norm < 1 else "the gradient may explode, but need not"
        sizes = f"largest singular value {norm:.3f}, spectral radius {radius:.3f}"
        return f"W_hh of {self.run}", f"{sizes}: {meaning}"


@register_view("gradient-flow")
class GradientFlowView(View[GradientFlowOptions]):
    summary = "How far back in time the loss of a language model reaches, of several runs side by side."
    Options = GradientFlowOptions
    progress = "runs read"

    def fits(self, run: InspectedRun) -> str:
        return why_no_states(run)

    def compute(
        self, run: InspectedRun, options: GradientFlowOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        if options.steps < 1:
            raise UserError(f"--steps {options.steps}: expected a number from 1 on")
        flows, recurrences = list[_Flow](), list[_Recurrence]()
        paths = ["", *(options.with_ or ())]
        for number, path in enumerate(paths):
            progress(number, len(paths))
            other = run.other_run(path) if path else run
            if why := self.fits(other):
                raise UserError(f"--with {path}: {why}")
            tokens, targets = _examples(other, options, log)
            flows += _flows(other, options.layer, tokens, targets)
            recurrences += _recurrences(other, tokens)
        panels = [_flow_panel(flows), *(panel for each in recurrences for panel in _panels(each))]
        subject = str(run.run.path)
        facts = [*(flow.fact() for flow in flows), *(each.fact() for each in recurrences)]
        values = {"run": subject, "states": [_flow_json(flow) for flow in flows]}
        title = f"{subject}: dL/ds, from the last step backwards"
        return Payload("gradient-flow", subject, title, tuple(panels), CAVEAT, "exact", tuple(facts), values)


def _examples(
    run: InspectedRun, options: GradientFlowOptions, log: Log
) -> tuple[Int[Tensor, "B T"], Int[Tensor, " B"]]:
    """Return rows of held-out text, evenly spaced, and the token that follows each.

    Raises: UserError: the text is too short.
    """
    part, split = held_out_examples(run, options.data, log)
    readable = options.steps if run.model.bounded else run.config.data.context_length
    steps = min(options.steps, readable, len(part) - 1)
    if steps < 1:
        raise UserError(f"{split}: a text of at least 2 tokens is needed; name another with --data")
    starts = np.unique(np.linspace(0, len(part) - 1 - steps, EXAMPLES).astype(np.int64))
    windows = np.stack([np.asarray(part[start : start + steps + 1], np.int64) for start in starts])
    rows = torch.from_numpy(windows).to(next(run.model.parameters()).device)
    return rows[:, :-1], rows[:, -1]


def _flows(
    run: InspectedRun, layer: str | None, tokens: Int[Tensor, "B T"], targets: Int[Tensor, " B"]
) -> Iterator[_Flow]:
    """Yield the norms for a state, or for all states of the lowest layer.

    Raises: UserError: there is no such state.
    """
    check_state_name(run, layer, state_names(run.model))
    names = state_names(run.model)
    lowest = names[0].rpartition("/")[0]
    chosen = [name for name in names if name.rpartition("/")[0] == lowest] if layer is None else [layer]
    if layer is None and len(names) == 1 and names[0].endswith("/features"):
        chosen = ["embedding/output"]  # no later layer moves a single block's outputs from step to step
    for name, gradients in state_gradients(run.model, tokens, targets, chosen).items():
        yield _Flow(str(run.run.path), name, relative_norms(gradients).cpu().numpy())


def _recurrences(run: InspectedRun, tokens: Int[Tensor, "B T"]) -> Iterator[_Recurrence]:
    """Yield the recurrent weights of the lowest layer if it is a vanilla RNN."""
    name = state_names(run.model)[0]
    modules = {path: module for module, path in published_paths(run.model).items()}
    cell = getattr(modules[name.rpartition("/")[0]], "cell", None)
    if isinstance(cell, ElmanCell):
        rows = tokens[:JACOBIAN_EXAMPLES]
        chunks = [chunk.states[name] for chunk in read_chunks(run.model, rows, rows.shape[1], [name])]
        norms = jacobian_norms(cell, torch.cat(chunks, 1)).cpu().numpy()
        yield _Recurrence(str(run.run.path), name, spectrum(cell.weight_hidden), norms)


def _flow_panel(flows: Sequence[_Flow]) -> Lines:
    """Return the curves of all states; the states of a run share a color."""
    runs = [*dict.fromkeys(flow.run for flow in flows)]
    series = []
    for flow in flows:
        same = [other.state for other in flows if other.run == flow.run]
        style: Any = "line" if flow.state == same[0] else "dotted"
        name = f"{flow.run}: {flow.state}"
        series.append(_series(name, flow.norms, runs.index(flow.run), style))
    return Lines(
        "", tuple(series), "steps back in time", "gradient, 1 at the last step", log_y=True, size=WIDE
    )


def _panels(recurrence: _Recurrence) -> Iterator[Panel]:
    """Yield the Jacobian product beside the bounds from the spectrum, and the spectrum."""
    k = np.arange(recurrence.norms.shape[1])
    norm, radius = recurrence.spectrum.norm, recurrence.spectrum.radius
    powers = ("largest singular value, to the power k", norm), ("spectral radius, to the power k", radius)
    series = [_series("norm of the product of k Jacobians", recurrence.norms, 0, "line")]
    for color, (name, base) in enumerate(powers, 1):
        series.append(Series(name, k.tolist(), _positive(base**k), "dotted", color))
    title = f"{recurrence.run}, Jacobian of {k[-1]:,} steps"
    yield Lines(title, tuple(series), "steps back in time, k", "spectral norm", log_y=True, size=WIDE)
    angles = np.linspace(0, 2 * np.pi, 181)
    values = recurrence.spectrum.eigenvalues
    circle = Series("absolute value 1", np.cos(angles).tolist(), np.sin(angles).tolist(), "dotted", 1)
    points = Series("eigenvalues", values.real.tolist(), values.imag.tolist(), "points")
    title = f"{recurrence.run}, eigenvalues of W_hh"
    yield Lines(title, (circle, points), "real", "imaginary", equal=True, size=SQUARE, legend=False)
    singular = recurrence.spectrum.singular_values.tolist()
    ranks = [*range(1, len(singular) + 1)]
    title = f"{recurrence.run}, singular values of W_hh"
    yield Lines(title, (Series("singular values", ranks, singular, "dots"),), "rank", size=SQUARE)


def _series(name: str, norms: Float[np.ndarray, "B T"], color: int, style: Any) -> Series:
    """Return the median with its band."""
    low, median, high = np.quantile(norms, (BAND[0], 0.5, BAND[1]), axis=0)
    band = (_positive(low), _positive(high))
    return Series(name, [*range(norms.shape[1])], _positive(median), style, color, band)


def _positive(values: Float[np.ndarray, " T"]) -> list[float]:
    """Return the values; those without a logarithm are NaN, which has no point."""
    return np.where(values > 0, values, np.nan).tolist()


def _flow_json(flow: _Flow) -> dict[str, Any]:
    return {"run": flow.run, "state": flow.state, "median": flow.median.tolist(), "reach": flow.reach}
