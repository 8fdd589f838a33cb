"""The view `rollout` of a run: from which inputs its last layer is mixed."""

from typing import Any

import numpy as np
import torch

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.inspection.attention.layers import (
    ENCODER,
    AttentionLayer,
    attending_modules,
    capture_attention,
)
from foveal.inspection.attention.panels import map_panel
from foveal.inspection.attention.words import visible_text
from foveal.inspection.chosen_input import InputOptions, choose_input, why_no_input
from foveal.inspection.panels import Axis, Caption, ColoredText, ImageRow, Images, NamedArray, Panel, Tile
from foveal.inspection.payload import Payload
from foveal.inspection.registry import register_view
from foveal.inspection.rollout.compute import roll_out
from foveal.inspection.run_protocols import InspectedRun
from foveal.inspection.view import View

CAVEAT = (
    "rollout takes each layer for an average of its inputs: it leaves out values, projections, feed-forward "
    "layers and norms, so it says from where information could flow, not what is used"
)
MOST_POSITIONS = 1024
"""Positions at most: the products take their cube."""


@register_view("rollout")
class RolloutView(View[InputOptions]):
    summary = "From which inputs each position is mixed, through all layers of self-attention."
    Options = InputOptions

    def fits(self, run: InspectedRun) -> str:
        modules = attending_modules(run.model).values()
        if not any(not getattr(module, "attends_to_memory", False) for module in modules):
            return "the model has no self-attention of Foveal"
        return why_no_input(run)

    def compute(
        self, run: InspectedRun, options: InputOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        chosen = choose_input(run, options, log)
        layers = rolled_layers(capture_attention(run.model, chosen))
        _, T, _ = layers[0].shape
        if T > MOST_POSITIONS:
            raise UserError(f"{chosen.name}: {T:,} positions, and rollout takes {MOST_POSITIONS:,} at most")
        modules = dict(run.model.named_modules())
        rows = roll_out((layer.weights(), _has_residual(modules, layer)) for layer in layers)
        summary, reader = _summary(layers[0], rows)
        panels = _panels(layers[0], rows, summary, reader, chosen.image)
        most = int(summary.argmax())
        label = visible_text(layers[0].keys[most])
        blocks = len(modules[layers[0].path.rpartition(".")[0].rpartition(".")[0]])
        facts = (
            ("input", chosen.name),
            ("layers", f"{len(layers)} with self-attention, of {blocks}; the others are left out"),
            (
                "most",
                f"{reader}: {summary[most]:.3f} of {label}, position {most}",
            ),
        )
        path = str(run.run.path)
        values = {"input": chosen.name, "rollout": summary.tolist()}
        return Payload(
            "rollout", path, f"{path}: rollout, {chosen.name}", panels, CAVEAT, "approximated", facts, values
        )


def rolled_layers(layers: list[AttentionLayer]) -> list[AttentionLayer]:
    """Return the layers of self-attention that follow each other: the encoder's, or else the decoder's.

    Raises: UserError: there are none.
    """
    own = [layer for layer in layers if layer.is_self and layer.kind != "pooling"]
    own = [layer for layer in own if layer.path.startswith(ENCODER)] or own
    own = [layer for layer in own if layer.shape[1] == own[0].shape[1]]
    if not own:
        raise UserError("no layer of self-attention has read this input")
    return own


def _has_residual(modules: dict[str, Any], layer: AttentionLayer) -> bool:
    return bool(getattr(modules[layer.path.rpartition(".")[0]], "residual", True))


def _summary(layer: AttentionLayer, rows: torch.Tensor) -> tuple[torch.Tensor, str]:
    """Return the row of the position that is read at the end, or the mean of all, and its name."""
    if layer.class_tokens:
        return rows[0], "the class token is mixed"
    if layer.kind == "causal":
        return rows[-1], "the last position is mixed"
    return rows.mean(0), "the mean of all positions is mixed"


def _panels(
    layer: AttentionLayer, rows: torch.Tensor, summary: torch.Tensor, reader: str, image: Any
) -> tuple[Panel, ...]:
    visible = layer.visibility(0).cpu() if layer.kind == "causal" else torch.ones(1, *rows.shape).bool()
    heatmap = map_panel("rollout", rows[None], visible, layer, ("position", "input"))
    high = float(summary.max())
    if layer.grid is not None and image is not None:
        places = summary[layer.class_tokens :]
        heat = (places / places.max()).numpy().reshape(layer.grid)
        caption = Caption(f"largest {float(places.max()):.3f}", "muted")
        tiles = Tile(image, (Caption("input"),)), Tile(image, (Caption("rollout"), caption), heat=heat)
        return Images(f"from where {reader}", (ImageRow(tiles),), tile_size=2.2), heatmap
    if not layer.has_key_tokens:
        return (heatmap,)
    array = NamedArray(np.asarray(summary)[None], (Axis("", ("rollout",)), Axis("token")), "share")
    return ColoredText(f"from where {reader}", layer.keys, array, 0.0, high), heatmap
