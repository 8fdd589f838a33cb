"""Training speed of a recurrent decoder with additive attention: the kernel against the equation.

Measures forward and backward of a single GRU layer. Both sides use the same products and the same steps of
the cell.
"""

from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch import Tensor

from benchmarks.timing import Measurement, interleave, parse_options, ratio, report
from foveal.core.memory import Memory
from foveal.core.runtime import keep_freed_memory
from foveal.layers.mixers.attention_rnn import AttentionRNN
from foveal.ops.jit.dispatch import reference_only

SIZES = [(20, 100, 100, 128, 256), (40, 100, 100, 128, 256), (128, 13, 13, 256, 512)]
"""Rows, positions of the memory, positions of the target, width of the decoder, width of the memory."""


def step(mixer: AttentionRNN, x: Tensor, memory: Memory, reference: bool) -> Callable[[], Tensor]:
    """Return a function that runs forward and backward and returns the output."""

    def run() -> Tensor:
        with reference_only() if reference else nullcontext():
            y, _ = mixer(x, mixer.init_state(len(x), memory=memory))
            y.sum().backward()
        return y

    return run


def measure(
    rows: int, source: int, target: int, width: int, memory_width: int, quick: bool
) -> list[Measurement]:
    if quick:
        rows, source, target = 2, 5, 3
    mixer = AttentionRNN("gru", 64, width, memory_width, "additive")
    vectors = torch.randn(rows, source, memory_width, requires_grad=True)
    memory = Memory(vectors, torch.ones(rows, source, dtype=torch.bool), vectors.detach().mean(1))
    x = torch.randn(rows, target, 64, requires_grad=True)
    runs = {name: step(mixer, x, memory, name == "equation") for name in ("kernel", "equation")}
    torch.testing.assert_close(runs["kernel"](), runs["equation"](), rtol=1e-4, atol=1e-5)
    samples = interleave(runs, quick=quick)
    times = [f"{1e3 * samples.median(name):.1f}" for name in runs]
    sizes = f"batch {rows}, memory {source} x {memory_width}, width {width}"
    notes = f"{times[0]} ms against {times[1]} ms for {target} positions", samples.trust
    what = f"additive attention, kernel over equation, {sizes}"
    return [ratio(what, samples.speedup("kernel", "equation"), None, *notes)]


if __name__ == "__main__":
    options = parse_options(__doc__)
    keep_freed_memory()
    report([figure for size in SIZES for figure in measure(*size, options.quick)], options)
