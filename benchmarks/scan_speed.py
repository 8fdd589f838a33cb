"""Speed of the scans, forward and backward with the gradients of every input.

Mamba's selective scan against the parallel scan of mamba.py (inner width 256, state 16, batch 1); S5's scan
and RWKV's recurrence (256 channels) against their loops over time; and the growth of the time with the
length. mamba.py runs in a separate process, without `foveal train`'s setting of the allocator.
"""

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor

from benchmarks.peers import peer
from benchmarks.timing import Measurement, Samples, SeparateProcess, interleave, parse_options, ratio, report
from foveal.core.runtime import keep_freed_memory
from foveal.ops.jit.dispatch import record_paths
from foveal.ops.recurrent.rwkv import EMPTY_EXPONENT, wkv, wkv_reference
from foveal.ops.ssm.linear_scan import linear_scan, linear_scan_reference
from foveal.ops.ssm.selective_scan import _SelectiveScan, chunked_backward, chunked_forward, selective_scan

INNER, STATES = 256, 16
CHANNELS = 256

Operation = Callable[..., Tensor]
Case = Callable[[int, int], tuple[Tensor, ...]]


def passes(operation: Operation, inputs: tuple[Tensor, ...]) -> Callable[[], Tensor]:
    """Return a function for one forward and backward pass, which returns the output."""
    inputs = tuple(x.detach().requires_grad_() for x in inputs)
    gradient = torch.randn_like(operation(*inputs))

    def run() -> Tensor:
        y = operation(*inputs)
        torch.autograd.grad(y, inputs, gradient, allow_unused=True)
        return y.detach()

    return run


def selective_inputs(batch: int, length: int) -> tuple[Tensor, ...]:
    """Return u, delta, A, B, C and the initial state, distributed as in a new Mamba layer."""
    u, B, C = (torch.randn(batch, length, width) for width in (INNER, STATES, STATES))
    delta = torch.empty(batch, length, INNER).uniform_(-7, -2.3).exp_()
    A = -torch.arange(1.0, STATES + 1).expand(INNER, STATES)
    return u, delta, A, B, C, torch.zeros(batch, INNER, STATES)


def mamba_py() -> Operation:
    """Return the selective scan as mamba.py's MambaBlock computes it, from a state of zeros."""
    pscan = peer("mambapy.pscan", "mambapy==1.2.0").pscan

    def scan(u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, _: Tensor) -> Tensor:
        decay = torch.exp(delta[..., None] * A)
        h = pscan(decay, delta[..., None] * B[:, :, None] * u[..., None])
        return (h @ C[..., None]).squeeze(3)

    return scan


def mamba_py_passes(length: int) -> Callable[[], None]:
    """Return a pass of mamba.py for a separate process, which sends no outputs back."""
    run = passes(mamba_py(), selective_inputs(1, length))

    def run_without_output() -> None:
        run()

    return run_without_output


def linear_inputs(batch: int, length: int) -> tuple[Tensor, ...]:
    """Return decay, v and the initial state of S5: complex, with decays just inside the unit circle."""
    angle, radius = torch.rand(CHANNELS) * 3, torch.empty(CHANNELS).uniform_(0.9, 0.999)
    v = torch.randn(batch, length, CHANNELS, dtype=torch.complex64)
    return torch.polar(radius, angle), v, torch.zeros_like(v[:, 0])


def rwkv_inputs(batch: int, length: int) -> tuple[Tensor, ...]:
    """Return k, v, w, u of RWKV."""
    k, v = torch.randn(2, batch, length, CHANNELS).unbind(0)
    return k, v, -torch.linspace(-5, 3, CHANNELS).exp(), torch.randn(CHANNELS)


def from_empty_state(recurrence: Callable[..., tuple[Tensor, object]]) -> Operation:
    """Return RWKV's `recurrence` from the empty state."""

    def run(k: Tensor, v: Tensor, w: Tensor, u: Tensor) -> Tensor:
        zeros = torch.zeros_like(k[:, 0])
        return recurrence(k, v, w, u, (zeros, zeros, torch.full_like(zeros, EMPTY_EXPONENT)))[0]

    return run


def check_equal(runs: dict[str, Callable[[], Tensor]]) -> str:
    """Check that all runs compute the same, and return the path that ours took."""
    with record_paths() as paths:
        expected = runs["ours"]()
    for run in runs.values():
        torch.testing.assert_close(run(), expected, rtol=1e-3, atol=1e-4)
    return paths[0]


def growth(operation: str, samples: Samples, lengths: tuple[int, int]) -> Measurement:
    """Return the time of the longer sequence over that of the shorter."""
    short, long = (f"ours {length}" for length in lengths)
    times = f"{1e3 * samples.median(short):.3g} ms and {1e3 * samples.median(long):.3g} ms"
    title = f"{operation}: time of {lengths[1]} steps over that of {lengths[0]}"
    return ratio(title, samples.speedup(short, long), 9.0, times, samples.trust, at_most=True)


def measure_selective(quick: bool) -> list[Measurement]:
    lengths = (64, 128) if quick else (1024, 8192)
    all_runs: dict[str, Callable[[], object]] = {}
    path = ""
    for length in lengths:
        inputs = selective_inputs(1, length)
        runs = {
            "ours": passes(lambda *tensors: selective_scan(*tensors)[0], inputs),
            "torch": passes(
                lambda *tensors: _SelectiveScan.apply(chunked_forward, chunked_backward, *tensors)[0], inputs
            ),
        }
        path = check_equal(runs | {"mamba.py": passes(mamba_py(), inputs)})
        all_runs |= {f"{name} {length}": run for name, run in runs.items()}
        all_runs[f"mamba.py {length}"] = SeparateProcess(mamba_py_passes, length)
    samples = interleave(all_runs, rounds=7, quick=quick)
    measurements = []
    for length, goal, stretch in zip(lengths, (18.0, 38.0), (30, 60), strict=True):
        theirs = f"mamba.py {length}"
        for name, least, note in (("ours", goal, f"{path}; stretch {stretch}"), ("torch", 1.0, "no kernel")):
            ours = f"{name} {length}"
            times = f"{1e3 * samples.median(ours):.3g} ms against {1e3 * samples.median(theirs):.4g} ms"
            title = f"Selective scan{' in plain torch' * (name == 'torch')} over mamba.py, {length} steps"
            measurements.append(
                ratio(title, samples.speedup(ours, theirs), least, times, note, samples.trust)
            )
    return [*measurements, growth("Selective scan", samples, lengths)]


def measure_loop(
    operation: str, case: Case, fast: Operation, loop: Operation, quick: bool
) -> list[Measurement]:
    """Measure the fast path against the loop over time at 1024 steps, and the growth of its time."""
    shortest, *longer = (64, 128, 256) if quick else (1024, 8192, 65536)
    measurements = []
    for batch in (1, 8):
        inputs = case(batch, shortest)
        runs = {"ours": passes(fast, inputs), "loop": passes(loop, inputs)}
        path = check_equal(runs)
        samples = interleave(runs, rounds=5, seconds=0.5, quick=quick)
        times = f"{1e3 * samples.median('ours'):.3g} ms against {1e3 * samples.median('loop'):.4g} ms"
        title = f"{operation} over its loop, {shortest} steps, batch {batch}, {CHANNELS} channels"
        measurements.append(ratio(title, samples.speedup("ours", "loop"), 10.0, times, path, samples.trust))
    runs = {f"ours {length}": passes(fast, case(1, length)) for length in (shortest, *longer)}
    samples = interleave(runs, seconds=0.5, quick=quick)
    return measurements + [growth(operation, samples, pair) for pair in pairwise((shortest, *longer))]


if __name__ == "__main__":
    options = parse_options(__doc__)
    torch.manual_seed(0)
    keep_freed_memory()  # as `foveal train` does
    report(
        [
            *measure_selective(options.quick),
            *measure_loop("S5's scan", linear_inputs, linear_scan, linear_scan_reference, options.quick),
            *measure_loop(
                "RWKV's recurrence",
                rwkv_inputs,
                from_empty_state(wkv),
                from_empty_state(wkv_reference),
                options.quick,
            ),
        ],
        options,
    )
