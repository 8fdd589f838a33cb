"""Causal attention, forward and backward: its memory at length 8192, its speed over the equation at 2048.

Batch 1, 8 heads of width 64. Memory is the peak of a fresh process above its inputs: the output, all
gradients, and values stored for backward. Key padding hides the last quarter of the keys and every fourth
block of 100 keys.
"""

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.timing import Measurement, interleave, parse_options, ratio, report
from foveal.ops.attention.dot_product import attention, attention_reference

HEADS, WIDTH, WINDOW = 8, 64, 256
CASES = {"plain": (False, 0), "key padding": (True, 0), f"window {WINDOW}": (False, WINDOW)}
"""For each case: whether keys are padded, and the window (0 for none)."""


def inputs(T: int) -> list[Tensor]:
    """Return q, k, v in the memory layout of a layer: (B, T, H, K), transposed to (B, H, T, K)."""
    return [torch.randn(1, T, HEADS, WIDTH).transpose(1, 2).requires_grad_() for _ in range(3)]


def padding(T: int) -> Tensor:
    """Return the mask (1, 1, 1, T) of the keys that are not padding."""
    keys = torch.arange(T)
    return ((keys < 3 * T // 4) & (keys // 100 != 3))[None, None, None]


def both_ways(compute: Callable[..., Tensor], parts: list[Tensor], *settings: object) -> None:
    """Run forward and backward."""
    torch.autograd.grad(compute(*parts, *settings).sum(), parts)


def peak_memory(T: int, case: str) -> float:
    """Return the peak memory above the inputs, in megabytes."""
    masked, window = CASES[case]

    def run(parts: list[Tensor], mask: Tensor) -> None:
        both_ways(attention, parts, mask if masked else None, True, window)

    run(inputs(512), padding(512))  # the first call loads the kernels
    parts, mask = inputs(T), padding(T)
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak (Linux)
    before = _megabytes("VmRSS")
    run(parts, mask)
    return _megabytes("VmHWM") - before


def _megabytes(name: str) -> float:
    """Return a field of this process's status, in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024 / 1e6


def measure_memory(options: argparse.Namespace) -> list[Measurement]:
    """Measure the peak memory of each case, each in a fresh process."""
    T, measurements = 1024 if options.quick else 8192, []
    for case in CASES:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            megabytes = process.submit(peak_memory, T, case).result()
        measurements.append(
            Measurement(f"attention's memory above its inputs, {case}, length {T}, MB", megabytes, 100, True)
        )
    return measurements


def measure_speed(options: argparse.Namespace) -> list[Measurement]:
    """Measure the speed of each case against the equation."""
    T = 256 if options.quick else 2048
    parts, mask = inputs(T), padding(T)
    runs: dict[str, Callable[[], object]] = {
        "equation": partial(both_ways, attention_reference, parts, None, True)
    }
    for case, (masked, window) in CASES.items():
        runs[case] = partial(both_ways, attention, parts, mask if masked else None, True, window)
    samples = interleave(runs, rounds=5, quick=options.quick)
    times = {name: f"{1e3 * samples.median(name):.0f} ms" for name in runs}
    return [
        ratio(
            f"attention's speed over the equation, {case}, length {T}",
            samples.speedup(case, "equation"),
            4 if case == "plain" else None,
            f"{times[case]} against {times['equation']}",
            samples.trust,
        )
        for case in CASES
    ]


if __name__ == "__main__":
    options = parse_options(__doc__)
    report(measure_memory(options) + measure_speed(options), options)
