"""Cost of closed taps: one token through a language model, with taps against taps that are taken out.

One token of one row is the least work for each tap, so the cost of the look-ups shows most.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

import torch

import foveal
from benchmarks.timing import Measurement, interleave, parse_options, ratio, report
from foveal.core import tap
from foveal.core.tap import TappedModule

MODELS = ("attention", "lstm", "mamba")
GOAL = 0.98
CALLS = 20
"""Forward passes of a sample."""


@contextmanager
def without_taps() -> Iterator[None]:
    """Return a context in which taps do nothing, not even look for a listener."""
    with (
        patch.object(TappedModule, "tap", lambda self, site, compute: None),
        patch.object(TappedModule, "has_listener", lambda self, site: False),
        patch.object(tap, "_active_listener", lambda: None),
    ):
        yield


def measure(name: str, quick: bool) -> Measurement:
    """Return the speed with closed taps over that without taps."""
    torch.manual_seed(0)
    model = foveal.create_model(name, vocabulary=65).eval()
    tokens = torch.zeros(1, 1, dtype=torch.long)

    def run() -> None:
        with torch.inference_mode():
            for _ in range(CALLS):
                model(tokens)

    def run_without() -> None:
        with without_taps():
            run()

    runs: dict[str, Callable[[], object]] = {"taps": run, "none": run_without}
    samples = interleave(runs, quick=quick)
    times = [f"{1e3 * samples.median(one) / CALLS:.3f}" for one in ("taps", "none")]
    label = f"{name}, one token: closed taps over none, speed"
    return ratio(
        label, samples.speedup("taps", "none"), GOAL, f"{times[0]} ms against {times[1]} ms", samples.trust
    )


if __name__ == "__main__":
    options = parse_options(__doc__)
    report([measure(name, options.quick) for name in MODELS], options)
