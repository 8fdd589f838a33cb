"""Step 2: a few rows, overfitted. A model that can't do so has a fault, or is trained wrongly."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from foveal.core.progress import ProgressCallback
from foveal.core.terminal_text import decimals
from foveal.studies.tune.probe import Probe, end_level
from foveal.studies.tune.regularizers import without_regularizers

ROWS, MAX_STEPS = 8, 400
NEARLY_ZERO = 0.05
"""A loss below this share of the first is nearly zero."""
FALLS = 0.02
"""The loss still falls if the last tenth of the steps lowered it by this share."""
FACTORS = (1.0, 0.1, 0.01, 10.0)
"""The rates that are tried, as multiples of the one that is set, until one learns the rows."""


@dataclass(frozen=True)
class Overfit:
    """How well a few rows were overfitted."""

    rows: int | None
    """None for a whole batch, whose rows can't be taken apart."""
    lr: float
    """The rate with the lowest loss, in whose training these are the losses of each step."""
    losses: tuple[float, ...]
    failed_rates: tuple[float, ...]
    """The rates, tried before, at which the rows were not learned."""
    idle: tuple[str, ...]
    """Weights without a gradient, if the rows were not learned."""

    @property
    def holds(self) -> bool:
        """Return whether the loss came nearly to zero."""
        return _is_learned(self.losses)

    @property
    def lowest(self) -> float:
        return min(self.losses)

    @property
    def meaning(self) -> str:
        """Return what the losses say."""
        fall = f"from {decimals(self.losses[0], 3)} to {decimals(self.lowest, 3)} at a rate of {self.lr:.2g}"
        rows = "the rows of a batch" if self.rows is None else f"{self.rows} rows"
        if not self.holds:
            return f"{rows} are not overfitted: {fall} at best; {self._reason()}"
        rates = ", ".join(f"{rate:.2g}" for rate in self.failed_rates)
        others = f", but not at {rates}" if rates else ""
        return f"{rows} are overfitted in {len(self.losses)} steps: {fall}{others}"

    def _reason(self) -> str:
        if math.isinf(self.losses[-1]):
            return "then it rose beyond all bounds, at each rate that was tried"
        if self.idle:
            names = ", ".join(self.idle[:3]) + (" ..." if len(self.idle) > 3 else "")
            return f"{len(self.idle)} weights get no gradient ({names})"
        if len(self.losses) == 1:
            return "there was time for one step only: give a larger --budget"
        tenth = max(1, len(self.losses) // 10)
        before, last = end_level(self.losses[:-tenth]), end_level(self.losses)
        if before - last > FALLS * before:
            return f"it still falls after {len(self.losses)} steps, so the model needs more of them"
        return (
            "it stays there, so equal inputs may have different answers, what the rows differ in may not "
            "reach the output, or the model may be too small"
        )


def _is_learned(losses: Sequence[float]) -> bool:
    return losses[-1] <= NEARLY_ZERO * losses[0]


def overfit(probe: Probe, seconds: float, progress: ProgressCallback) -> Overfit:
    """Train on a few rows without regularization, at several rates until one learns them or time is up."""
    batch = probe.batches.batch(0, 0)
    rows = getattr(batch, "row_count", None)
    if rows is not None:
        rows = min(ROWS, rows)
        batch = batch.cut(slice(0, rows))
    ends = time.monotonic() + seconds
    tried = list[tuple[float, list[float]]]()
    with without_regularizers(probe.task) as task:
        bare = Probe(task, probe.batches)
        for number, factor in enumerate(FACTORS):
            progress(number, len(FACTORS))
            lr = factor * task.config.optimizer.lr
            until = time.monotonic() + max(0.0, ends - time.monotonic()) / 2

            def stop(losses: Sequence[float], until: float = until) -> bool:
                return _is_learned(losses) or time.monotonic() > until

            tried.append((lr, bare.train(lr, MAX_STEPS, stop, batch)))
            if _is_learned(tried[-1][1]):
                break
        lr, losses = min(tried, key=lambda each: each[1][-1])
        idle = [] if _is_learned(losses) else bare.idle_weights(batch)
    others = tuple(rate for rate, _ in tried if rate != lr)
    return Overfit(rows, lr, tuple(losses), others, tuple(idle))
