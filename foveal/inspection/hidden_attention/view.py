"""The view `hidden-attention` of a run: what the scans of Mamba read, beside the layers that attend."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.core.whole_number import WholeNumber
from foveal.inspection.attention.compute import summarize_layer
from foveal.inspection.attention.layers import ENCODER, START, attending_modules, capture_attention
from foveal.inspection.attention.panels import MOST_GRID_CELLS, MOST_OF_CELLS, grid_panels
from foveal.inspection.attention.words import visible_text
from foveal.inspection.capture.capture import capture
from foveal.inspection.chosen_input import ChosenInput, InputOptions, choose_input, why_no_input
from foveal.inspection.hidden_attention.compute import scan_matrices
from foveal.inspection.panels import Axis, Heatmap, HeatmapGrid, NamedArray, Panel
from foveal.inspection.payload import Payload
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun
from foveal.inspection.view import View

CAVEAT = (
    "a weight is that of one channel's scan before its gate, for this input; weights have signs and do not "
    "sum to 1, so they are no shares, and the short convolution before the scan mixes neighbors too"
)
MOST_POSITIONS = 128
"""Positions that are shown at most: the matrices grow with their square."""
CHANNELS = 5
"""Channels of each layer in the grid, those with the largest weights."""
SITES = ("delta", "B", "C", "u", "y")


@runtime_checkable
class SelectiveModule(Protocol):
    """A module with a selective scan, whose taps are `SITES`."""

    A_log: Tensor
    skip: Tensor


@dataclass(frozen=True)
class HiddenAttentionOptions(InputOptions):
    layer: WholeNumber = 0
    """The layer that is shown, counted from 0 among those with a selective scan."""
    unit: WholeNumber | None = None
    """The channel that is shown, counted from 0; the mean of all channels if not given."""


class Scan(NamedTuple):
    """The matrices of a layer's channels, and the largest deviation of what they give from the kernel."""

    path: str
    matrices: Float[Tensor, "E T T"]
    names: tuple[str, ...]
    deviation: float


@register_view("hidden-attention")
class HiddenAttentionView(View[HiddenAttentionOptions]):
    summary = "What each channel of Mamba's scan reads, as weights with signs, beside the layers that attend."
    Options = HiddenAttentionOptions

    def fits(self, run: InspectedRun) -> str:
        if not any(isinstance(module, SelectiveModule) for module in run.model.modules()):
            return "the model has no selective scan (mixer mamba)"
        return why_no_input(run)

    def compute(
        self, run: InspectedRun, options: HiddenAttentionOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        chosen = choose_input(run, options, log)
        scans = capture_scans(run.model, chosen)
        if not 0 <= options.layer < len(scans):
            raise UserError(f"--layer {options.layer}: there are {len(scans)} layers with a scan, from 0 on")
        shown = scans[options.layer]
        channels = len(shown.matrices)
        if options.unit is not None and not 0 <= options.unit < channels:
            raise UserError(f"--unit {options.unit}: the layer has {channels} channels, from 0 on")
        panels: list[Panel] = [_shown_panel(shown, options.unit), _grid_panel(scans)]
        if attending_modules(run.model):
            layers = capture_attention(run.model, chosen)
            panels += grid_panels(layers, [summarize_layer(layer, MOST_GRID_CELLS) for layer in layers])
        deviation = max(scan.deviation for scan in scans)
        facts = [
            ("input", chosen.name),
            ("shown", f"{shown.path}, {_channel_name(options.unit)}"),
            ("channels", f"with the largest weights in it: {_listed(shown)}"),
            ("weights", f"the scan's outputs deviate by {deviation:.1e} at most from the kernel's"),
        ]
        if len(chosen.source) > MOST_POSITIONS:
            facts.append(("positions", f"the first {MOST_POSITIONS} of {len(chosen.source):,}"))
        path, values = str(run.run.path), {"input": chosen.name, "deviation": deviation}
        title = f"{path}: hidden attention, {chosen.name}"
        all_facts, all_panels = tuple(facts), tuple(panels)
        return Payload("hidden-attention", path, title, all_panels, CAVEAT, "recomputed", all_facts, values)


def capture_scans(model: Any, chosen: ChosenInput) -> list[Scan]:
    """Run the model on the input, and return the matrices of its scans in the order of the computation."""
    modules = {path: each for path, each in model.named_modules() if isinstance(each, SelectiveModule)}
    patterns = [f"{path}/{site}" for path in modules for site in SITES]
    with torch.inference_mode(), capture(model, *patterns) as captured:
        chosen.log_probabilities()
    paths = [name.rpartition("/")[0] for name in captured if name.endswith("/delta")]
    return [_scan(path, modules[path], captured, hasattr(model, "encoder"), chosen) for path in paths]


def _scan(path: str, module: SelectiveModule, captured: Any, has_encoder: bool, chosen: ChosenInput) -> Scan:
    values = {site: captured[f"{path}/{site}"][0][0].float().cpu() for site in SITES}
    delta, B, C, u, y = (values[site][:MOST_POSITIONS] for site in SITES)
    matrices = scan_matrices(delta, -module.A_log.detach().float().exp().cpu(), B, C)
    deviation = (torch.einsum("ets,se->te", matrices, u) - y).abs().max()
    in_decoder = has_encoder and not path.startswith(ENCODER)
    names: Sequence[str] = (START, *chosen.target[:-1]) if in_decoder else chosen.source
    count = len(values["delta"])
    names = names if len(names) == count else [*map(str, range(count))]
    if path.rpartition(".")[2] == "back":  # the reversed direction reads the row from its end
        names = [*reversed(names)]
    return Scan(path, matrices, tuple(map(visible_text, names[:MOST_POSITIONS])), float(deviation))


def _shown_panel(scan: Scan, channel: int | None) -> Heatmap:
    matrix = scan.matrices.mean(0) if channel is None else scan.matrices[channel]
    values = _masked(matrix)
    high = float(np.nanmax(np.abs(values))) or 1.0
    axes = Axis("output", scan.names), Axis("input", scan.names)
    return Heatmap(f"{scan.path}, {_channel_name(channel)}", NamedArray(values, axes, "weight"), -high, high)


def _largest_channels(scan: Scan, count: int) -> list[int]:
    """Return the channels with the largest weights."""
    channels: list[int] = scan.matrices.abs().mean((1, 2)).topk(count).indices.tolist()
    return channels


def _listed(scan: Scan) -> str:
    count = min(CHANNELS, len(scan.matrices))
    return ", ".join(map(str, _largest_channels(scan, count)))


def _grid_panel(scans: Sequence[Scan]) -> HeatmapGrid:
    """Return the channels with the largest weights of each layer, on one scale, which ends where nearly all
    weights do."""
    count = min(CHANNELS, *(len(scan.matrices) for scan in scans))
    maps = [[_masked(scan.matrices[i]) for i in _largest_channels(scan, count)] for scan in scans]
    values = np.array(maps)
    high = float(np.nanquantile(np.abs(values), MOST_OF_CELLS)) or 1.0
    axes = (
        Axis("layer", tuple(f"layer {number}" for number in range(len(scans)))),
        Axis("channel", tuple(f"channel {rank} by size" for rank in range(1, count + 1))),
        Axis("output"),
        Axis("input"),
    )
    title = "scans of the channels with the largest weights, which share the strongest color"
    return HeatmapGrid(title, NamedArray(values, axes, "weight"), -high, high)


def _masked(matrix: Float[Tensor, "T T"]) -> Float[np.ndarray, "T T"]:
    """Return the matrix with NaN where an input is later than the output."""
    values: Float[np.ndarray, "T T"] = matrix.numpy().copy()
    values[np.triu_indices(len(values), 1)] = np.nan
    return values


def _channel_name(channel: int | None) -> str:
    return "mean of all channels" if channel is None else f"channel {channel}"
