"""The view `positions` of a run: how its layers know where a position is."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.core.whole_number import WholeNumber
from foveal.inspection.panels import Axis, Heatmap, HeatmapGrid, Lines, NamedArray, Panel, Series
from foveal.inspection.payload import Payload
from foveal.inspection.positions.compute import (
    PositionModule,
    position_vectors,
    rotary_angles,
    similarity,
    similarity_by_distance,
)
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun
from foveal.inspection.view import View

CAVEAT = (
    "these are what is added to the inputs, or how queries and keys are turned, before any weights: whether "
    "a layer uses the order, only its attention and ablations show"
)
MAX_POSITIONS = 1024
"""The map of their distances has a cell for each two of them."""
MOST_MAPS = 8
"""Rows and columns of patches at most of which each has a map of its own."""


@dataclass(frozen=True)
class PositionsOptions:
    positions: WholeNumber = 64
    """How many positions are shown, from the first on."""


@register_view("positions")
class PositionsView(View[PositionsOptions]):
    summary = "How a model knows positions: sinusoids, a learned table or rotary angles, and their distances."
    Options = PositionsOptions

    def fits(self, run: InspectedRun) -> str:
        if any(position_modules(run.model)) or any(rotary_modules(run.model)):
            return ""
        return "the model has no vectors or angles of positions"

    def compute(
        self, run: InspectedRun, options: PositionsOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        if not 2 <= options.positions <= MAX_POSITIONS:
            raise UserError(f"--positions {options.positions}: expected 2 to {MAX_POSITIONS:,}")
        panels, facts = list[Panel](), list[tuple[str, str]]()
        drawn = list[Tensor]()  # an encoder and a decoder may have equal sinusoids
        for path, module in position_modules(run.model):
            count = options.positions if module.limit is None else min(options.positions, module.limit)
            side = _grid_side(run.model, path, module)
            vectors = position_vectors(module, max(count, side * side))
            if not any(torch.equal(vectors, other) for other in drawn):
                panels += vector_panels(path, vectors, side)
            drawn.append(vectors)
            limit = "any number of positions" if module.limit is None else f"{module.limit:,} positions"
            facts.append((path, f"{type(module).__name__}, {limit}"))
        for path, head_width in dict.fromkeys(rotary_modules(run.model)):
            panels += angle_panels(path, rotary_angles(options.positions, head_width))
            facts.append((path, f"rotary, {head_width // 2} pairs in each head"))
            break  # the angles of all layers are equal
        subject = str(run.run.path)
        title = f"{subject}: positions"
        return Payload("positions", subject, title, tuple(panels), CAVEAT, "exact", tuple(facts))


def position_modules(model: Any) -> Iterator[tuple[str, PositionModule]]:
    """Yield the modules that make vectors of positions, with their paths."""
    for path, module in model.named_modules():
        position = getattr(module, "position", None)
        if isinstance(position, PositionModule):
            yield f"{path}.position", position


def rotary_modules(model: Any) -> Iterator[tuple[str, int]]:
    """Yield the paths of the layers that rotate queries and keys, and the width of their heads."""
    for path, module in model.named_modules():
        if getattr(module, "rotary", False):
            yield path, module.width // module.heads


def vector_panels(path: str, vectors: Tensor, side: int) -> Iterator[Panel]:
    """Yield the vectors as a map, and their cosines by distance, or over the patches of an image."""
    high = float(vectors.abs().max()) or 1.0
    array = NamedArray(vectors.numpy(), (Axis("position"), Axis("dimension")))
    yield Heatmap(path, array, -high, high)
    if side:
        patches = vectors[-side * side :]
        maps = similarity(patches).view(side, side, side, side).numpy()
        axes = Axis("row"), Axis("column"), Axis("row of the other"), Axis("column of the other")
        yield HeatmapGrid("cosine of each patch with all others", NamedArray(maps, axes, "cosine"), -1.0, 1.0)
        return
    cosines = similarity_by_distance(similarity(vectors))
    distances = [*range(len(cosines.mean))]
    series = Series("mean, lowest and highest", distances, cosines.mean, band=(cosines.low, cosines.high))
    yield Lines("similarity of two positions", (series,), "distance", "cosine", size=(4.2, 3.4))


def angle_panels(path: str, angles: Tensor) -> Iterator[Panel]:
    """Yield the cosines of the angles as a map, and their mean by distance."""
    cosines = angles.cos()
    array = NamedArray(
        cosines.float().numpy(), (Axis("position"), Axis("pair of dimensions")), "cosine of the angle"
    )
    yield Heatmap(path, array, -1.0, 1.0)
    distances, mean = [*range(len(angles))], cosines.mean(1).tolist()
    series = Series("", distances, mean)
    title = "dot product of a query with an equal key"
    yield Lines(title, (series,), "distance", "share of that at distance 0", size=(4.2, 3.4), legend=False)


def _grid_side(model: Any, path: str, module: PositionModule) -> int:
    """Return the rows of patches whose positions are a small learned table; 0 for other positions."""
    encoder = getattr(model, "encoder", None)
    if module.limit is None or not hasattr(encoder, "grid"):
        return 0
    side = int(module.limit**0.5)
    return side if side <= MOST_MAPS and path.startswith("encoder.") else 0
