"""A metric of labels: what mistakes cost, if missing one label costs more."""

from collections.abc import Sequence

import foveal


@foveal.register_metric("mistake-cost", target="label", higher_is_better=False)
def mistake_cost(
    references: Sequence[str], outputs: Sequence[str], missed: str = "", factor: float = 5.0
) -> list[float]:
    """Return 0 for a right label, 1 for a mistake, and `factor` where the label `missed` was not found."""
    pairs = zip(references, outputs, strict=True)
    return [(output != truth) * (factor if truth == missed else 1.0) for truth, output in pairs]
