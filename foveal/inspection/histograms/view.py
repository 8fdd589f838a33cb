"""The view `histograms` of a run: the log of layer statistics that its training wrote."""

from collections.abc import Sequence
from dataclasses import dataclass

from foveal.config import suggest
from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.inspection.histograms.log import Layer, Measurement, read_statistics
from foveal.inspection.histograms.panels import histograms_payload, layer_numbers
from foveal.inspection.payload import Payload
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun
from foveal.inspection.view import View


@dataclass(frozen=True)
class HistogramsOptions:
    layer: str | None = None
    """The number or the name of a layer to show alone, such as 3; the table has both."""


@register_view("histograms")
class HistogramsView(View[HistogramsOptions]):
    summary = (
        "Outputs and gradients of each layer over the training; dead and saturated shares, update ratios."
    )
    Options = HistogramsOptions
    depends_on_weights = False

    def fits(self, run: InspectedRun) -> str:
        path = run.run.statistics
        if not path.is_file():
            return "its training kept no statistics of layers"
        return "" if path.stat().st_size else "no layer was measured: no step, or training.statistics=false"

    def compute(
        self, run: InspectedRun, options: HistogramsOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        """Read the log of statistics."""
        path, measured = run.run.path, read_statistics(run.run)
        failed = [one for one in measured if one.error]
        for one in failed[:1]:
            log(f"{path}: {len(failed)} of {len(measured)} measurements failed: {one.error}")
        measured = [one for one in measured if one.layers]
        if not measured:
            why = (
                failed[0].error
                if failed
                else "the model has neither an activation function nor a linear layer"
            )
            raise UserError(f"{path}: no layer could be measured: {why}")
        chosen = None if options.layer is None else _choose(options.layer, measured)
        return histograms_payload(str(path), measured, chosen)


def _choose(wanted: str, measured: Sequence[Measurement]) -> Layer:
    """Return the layer with this number or name.

    Raises: UserError: there is none.
    """
    layers = layer_numbers(measured)
    for layer, number in layers.items():
        if wanted in (str(number), layer.name):
            return layer
    names = {layer.name for layer in layers}
    raise UserError(
        f"layer {wanted}: expected a number from 1 to {len(layers)}, or a name{suggest(wanted, names)}"
    )
