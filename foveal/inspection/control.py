"""The control of a view: the same view of random weights, and what it costs to remove what it highlights.

What looks alike with random weights does not come from the training (Adebayo et al. 2018, Sanity checks for
saliency maps).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, TypeVar

from foveal.core.errors import UserError
from foveal.inspection.panels import ColoredText, Heatmap, HeatmapGrid, Panel
from foveal.inspection.payload import Payload
from foveal.inspection.view import Ablation, View

Scaled = Heatmap | HeatmapGrid | ColoredText
PanelT = TypeVar("PanelT", bound=Panel)
TITLE = "control, random weights"


def check_has_control(view: View[Any]) -> None:
    """Check that random weights are a control of a view.

    Raises: UserError: the view does not depend on weights.
    """
    if not view.depends_on_weights:
        raise UserError(
            f"the view {view.name} does not read the model's weights, so it has no control: random weights "
            "would show the same; leave out --control"
        )


def with_control(payload: Payload, control: Payload, ablations: Sequence[Ablation]) -> Payload:
    """Return a payload with the panels and facts of its control behind its own.

    Maps and texts of both have one scale of colors, so that equal colors are equal numbers.
    """
    pairs = [*zip_longest(payload.panels, control.panels)]
    own = [_on_scale_of(panel, other) for panel, other in pairs if panel is not None]
    random = [_on_scale_of(panel, other) for other, panel in pairs if panel is not None]
    titled = [replace(panel, title=f"{TITLE}: {panel.title}".removesuffix(": ")) for panel in random]
    values = {"random_weights": control.values, "ablations": [ablation._asdict() for ablation in ablations]}
    return replace(
        payload,
        panels=(*own, *titled),
        facts=(*payload.facts, *_control_facts(payload, control), *map(_ablation_fact, ablations)),
        values=payload.values | values,
    )


def _on_scale_of(panel: PanelT, other: Panel | None) -> PanelT:
    """Return a panel whose scale of colors also holds the numbers of a panel of the same kind."""
    if isinstance(panel, Scaled) and type(other) is type(panel) and other.diverging == panel.diverging:
        return replace(panel, low=min(panel.low, other.low), high=max(panel.high, other.high))
    return panel


def _control_facts(payload: Payload, control: Payload) -> Iterator[tuple[str, str]]:
    """Yield the facts of the control, but for those that are facts of the payload, too."""
    for fact in control.facts:
        if fact not in payload.facts:
            name, value = fact
            yield f"{TITLE}: {name}", value


def _ablation_fact(ablation: Ablation) -> tuple[str, str]:
    change, count = ablation.after - ablation.before, ablation.targets
    summed, each = "", ""
    if count > 1:
        summed, each = f", summed over {count:,} targets,", f" ({change / count:+.2f} each)"
    return "ablated", (
        f"without {ablation.removed}, the log-probability of {ablation.outcome}{summed} changes by "
        f"{change:+.2f} nats{each}, from {ablation.before:.2f} to {ablation.after:.2f}"
    )
