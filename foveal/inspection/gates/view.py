"""The view `gates` of a language model with LSTM or GRU: the saturation of each gate unit, by layer."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.heads.decoder_lm import DecoderLM
from foveal.inspection.capture.modules import published_paths
from foveal.inspection.gates.compute import LEFT, RIGHT, Saturation, saturation
from foveal.inspection.panels import Lines, Series
from foveal.inspection.payload import Payload
from foveal.inspection.read_states import held_out_rows, read_chunks
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun
from foveal.inspection.view import View
from foveal.layers.mixers.recurrent import Recurrent

NAMES = {"i": "input gate", "f": "forget gate", "o": "output gate", "r": "reset gate", "z": "update gate"}
"""The gates that are sigmoids."""
CAVEAT = (
    "a gate that is always open or closed may belong to a unit that nothing reads; the limits 0.1 and "
    "0.9 are a convention"
)


@dataclass(frozen=True)
class GatesOptions:
    data: str | None = None
    """Other text than the run's held-out part."""


@register_view("gates")
class GatesView(View[GatesOptions]):
    summary = "How often each gate of an LSTM or GRU is open or closed, by layer."
    Options = GatesOptions
    progress = "parts of the text read"

    def fits(self, run: InspectedRun) -> str:
        has_gates = isinstance(run.model, DecoderLM) and bool(_gate_names(run.model))
        return "" if has_gates else "this view needs a language model with an LSTM or GRU"

    def compute(
        self, run: InspectedRun, options: GatesOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        tokens, split = held_out_rows(run, options.data, log)
        names = _gate_names(run.model)
        chunks = read_chunks(run.model, tokens, run.config.data.context_length, names, progress)
        saturations = saturation(chunk.states for chunk in chunks)
        subject = str(run.run.path)
        facts = tuple((name, _describe(each)) for name, each in saturations.items())
        values = {
            "run": subject,
            "split": split,
            "gates": {n: _json(each) for n, each in saturations.items()},
        }
        title = f"{subject}, {split}: a point is a unit"
        return Payload("gates", subject, title, _panels(saturations), CAVEAT, "exact", facts, values)


def _gate_names(model: torch.nn.Module) -> list[str]:
    """Return the names of all gates that are sigmoids, from the first layer on."""
    return [
        f"{path}/{gate}"
        for module, path in published_paths(model).items()
        if isinstance(module, Recurrent)
        for gate in module.cell.gate_names
        if gate in NAMES
    ]


def _panels(saturations: Mapping[str, Saturation]) -> tuple[Lines, ...]:
    """Return a panel for each gate, with a color for each layer."""
    layers = [*dict.fromkeys(name.rpartition("/")[0] for name in saturations)]
    gates = [*dict.fromkeys(name.rpartition("/")[2] for name in saturations)]
    x_label, y_label = f"share of steps below {LEFT}", f"share of steps above {RIGHT}"
    return tuple(
        Lines(
            NAMES[gate],
            tuple(
                Series(layer, each.left.tolist(), each.right.tolist(), "points", number)
                for number, layer in enumerate(layers)
                if (each := saturations.get(f"{layer}/{gate}")) is not None
            ),
            x_label,
            y_label,
            limits=(-0.03, 1.03),
        )
        for gate in gates
    )


def _describe(each: Saturation) -> str:
    always = int((each.right > RIGHT).sum())
    means = f"open {each.right.mean():.0%} of the time on average, closed {each.left.mean():.0%}"
    return f"{means}; {always} of {len(each.right)} units are open at more than {RIGHT:.0%} of the steps"


def _json(each: Saturation) -> dict[str, list[float]]:
    return {"left": each.left.tolist(), "right": each.right.tolist()}
