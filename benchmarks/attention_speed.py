"""Causal attention, forward and backward: its memory at length 8192, its speed over the equation at 2048.

Batch 1, 8 heads of 64. Memory is the growth of a fresh process's peak above its inputs: the output, all
gradients, what is kept for backward. Key padding hides the last quarter of the keys and a hole in the rest.
"""

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.timing import Figure, interleave, options, ratio, report
from foveal.ops.attention.dot_product import attention, attention_reference

HEADS, WIDTH, WINDOW = 8, 64, 256
CASES = {"plain": (False, 0), "key padding": (True, 0), f"window {WINDOW}": (False, WINDOW)}
"""Whether keys are hidden, and the window."""


def inputs(T: int) -> list[Tensor]:
    """q, k, v as a layer has them: (B, T, H, K) seen as (B, H, T, K)."""
    return [torch.randn(1, T, HEADS, WIDTH).transpose(1, 2).requires_grad_() for _ in range(3)]


def padding(T: int) -> Tensor:
    keys = torch.arange(T)
    return ((keys < 3 * T // 4) & (keys // 100 != 3))[None, None, None]


def both_ways(compute: Callable[..., Tensor], parts: list[Tensor], *settings: object) -> None:
    """Forward and backward."""
    torch.autograd.grad(compute(*parts, *settings).sum(), parts)


def peak(T: int, case: str) -> float:
    """Megabytes above the inputs, at the highest."""
    masked, window = CASES[case]

    def run(parts: list[Tensor], mask: Tensor) -> None:
        both_ways(attention, parts, mask if masked else None, True, window)

    run(inputs(512), padding(512))  # the first call loads the kernels
    parts, mask = inputs(T), padding(T)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew (Linux)
    before = _megabytes("VmRSS")
    run(parts, mask)
    return _megabytes("VmHWM") - before


def _megabytes(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024 / 1e6


def memory(given: argparse.Namespace) -> list[Figure]:
    T, figures = 1024 if given.quick else 8192, []
    for case in CASES:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
            found = fresh.submit(peak, T, case).result()
        figures.append(
            Figure(f"attention's memory above its inputs, {case}, length {T}, MB", found, 100, True)
        )
    return figures


def speed(given: argparse.Namespace) -> list[Figure]:
    T = 256 if given.quick else 2048
    parts, mask = inputs(T), padding(T)
    runs: dict[str, Callable[[], object]] = {
        "equation": partial(both_ways, attention_reference, parts, None, True)
    }
    for case, (masked, window) in CASES.items():
        runs[case] = partial(both_ways, attention, parts, mask if masked else None, True, window)
    samples = interleave(runs, rounds=5, quick=given.quick)
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
    given = options(__doc__)
    report(memory(given) + speed(given), given)
