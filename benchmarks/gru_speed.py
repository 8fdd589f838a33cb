"""Training speed of one GRU layer: alone and in our step, against `torch.nn.GRU`; bfloat16 against float32.

`lstm_speed` says what a step is.
"""

import torch
from torch import nn

from benchmarks.lstm_speed import measure, share
from benchmarks.own_cell import layer
from benchmarks.timing import Figure, interleave, options, ratio, report
from foveal.core.runtime import keep_freed_memory
from foveal.layers.mixers.recurrent import GRU, Recurrent


def measure_layer(width: int, batch: int, chunk: int, quick: bool) -> list[Figure]:
    """Forward and backward of the layer alone."""
    if quick:
        batch, chunk = 4, 8
    ours, theirs = GRU(width, width), nn.GRU(width, width, batch_first=True)
    share(ours, theirs)
    x, gradient = torch.randn(batch, chunk, width, requires_grad=True), torch.randn(batch, chunk, width)
    runs = {"ours": layer(Recurrent(ours), x, gradient), "bare": layer(theirs, x, gradient)}
    torch.testing.assert_close(runs["ours"](), runs["bare"](), rtol=1e-4, atol=1e-5)
    samples = interleave(runs, quick=quick)
    times = [f"{1e3 * samples.median(name):.1f}" for name in ("ours", "bare")]
    what = f"GRU over nn.GRU, layer alone, hidden {width}, batch {batch}, chunk {chunk}"
    notes = f"{times[0]} ms against {times[1]} ms", samples.trust
    return [ratio(what, samples.speedup("ours", "bare"), 1.0, *notes)]


if __name__ == "__main__":
    given = options(__doc__)
    keep_freed_memory()
    figures = []
    for size in ((128, 64, 64), (512, 64, 100)):
        figures += measure_layer(*size, given.quick) + measure(*size, given.quick, "gru", (1.0, 1.6))
    report(figures, given)
