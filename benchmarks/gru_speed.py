"""Training speed of one GRU layer, alone and in our step, against `torch.nn.GRU`; bfloat16 against float32.

`lstm_speed` describes the step.
"""

import torch
from torch import nn

from benchmarks.lstm_speed import copy_weights, measure
from benchmarks.own_cell import forward_and_backward
from benchmarks.timing import Measurement, interleave, parse_options, ratio, report
from foveal.core.runtime import keep_freed_memory
from foveal.layers.mixers.recurrent import Recurrent
from foveal.layers.mixers.recurrent_cells import GRUCell


def measure_layer(width: int, batch: int, chunk: int, quick: bool) -> list[Measurement]:
    """Measure forward and backward of the layer alone."""
    if quick:
        batch, chunk = 4, 8
    ours, theirs = GRUCell(width, width), nn.GRU(width, width, batch_first=True)
    copy_weights(ours, theirs)
    x, gradient = torch.randn(batch, chunk, width, requires_grad=True), torch.randn(batch, chunk, width)
    runs = {
        "ours": forward_and_backward(Recurrent(ours), x, gradient),
        "bare": forward_and_backward(theirs, x, gradient),
    }
    torch.testing.assert_close(runs["ours"](), runs["bare"](), rtol=1e-4, atol=1e-5)
    samples = interleave(runs, quick=quick)
    times = [f"{1e3 * samples.median(name):.1f}" for name in ("ours", "bare")]
    title = f"GRU over nn.GRU, layer alone, hidden {width}, batch {batch}, chunk {chunk}"
    notes = f"{times[0]} ms against {times[1]} ms", samples.trust
    return [ratio(title, samples.speedup("ours", "bare"), 1.0, *notes)]


if __name__ == "__main__":
    options = parse_options(__doc__)
    keep_freed_memory()
    measurements = []
    for size in ((128, 64, 64), (512, 64, 100)):
        measurements += measure_layer(*size, options.quick) + measure(*size, options.quick, "gru", (1.0, 1.6))
    report(measurements, options)
