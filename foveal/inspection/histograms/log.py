"""The log of layer statistics that a training wrote."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from foveal.core.errors import UserError
from foveal.core.parse_json import parse_json
from foveal.inspection.histograms.bins import BINS
from foveal.store.regular_files import read_regular
from foveal.store.run import RunFolder

COUNTS = ("count", "zeros", "nan", "infinite")


class Layer(NamedTuple):
    """The layer before a function, the function, and the shape of its output for a single example."""

    name: str
    function: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Measurement:
    """The statistics after a step, as `measure_layers` returned them."""

    step: int
    layers: Mapping[Layer, Mapping[str, Any]]
    gradient_norms: Mapping[str, float | None]
    """The norm of the gradient of each layer's weights."""
    updates: Mapping[str, Mapping[str, Any]]
    """The norms of each layer's weights and of its last update."""
    error: str


def read_statistics(folder: RunFolder) -> Sequence[Measurement]:
    """Return the measurements of a run in the order of their steps.

    Raises: UserError: a line is damaged.
    """
    path = folder.statistics
    lines = [
        line for line in read_regular(path).splitlines() if line.endswith(b"}")
    ]  # one may be half written
    try:
        return [_measurement(parse_json(line)) for line in lines]
    except (ValueError, TypeError, LookupError, AttributeError):
        raise UserError(f"{path}: damaged, so the run has no histograms; restore the file") from None


def _measurement(record: Mapping[str, Any]) -> Measurement:
    layers = {}
    for one in record.get("layers", []):
        for part in (one, *([one["gradient"]] if one["gradient"] else [])):
            if len(part["counts"]) != BINS or any(type(part[name]) is not int for name in COUNTS):
                raise ValueError(part)
        layers[Layer(str(one["layer"]), str(one["function"]), tuple(map(int, one["shape"])))] = one
    updates = {one["layer"]: one for one in record["updates"]}
    norms = dict(record.get("gradients", {}))
    return Measurement(int(record["step"]), layers, norms, updates, str(record.get("error", "")))
