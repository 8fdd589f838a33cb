"""Speed of the scans, forward and backward with the gradients of every input.

Mamba's selective scan against mamba.py's parallel scan (inner width 256, state 16, batch 1), S5's scan and
RWKV's recurrence (256 channels) against their loops over time; and how time grows with length. mamba.py runs
in a process of its own, without `foveal train`'s setting of the allocator.
"""

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor

from benchmarks.peers import peer
from benchmarks.timing import Apart, Figure, Samples, interleave, options, ratio, report
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
    """A call is one forward and backward pass."""
    inputs = tuple(x.detach().requires_grad_() for x in inputs)
    gradient = torch.randn_like(operation(*inputs))

    def run() -> Tensor:
        y = operation(*inputs)
        torch.autograd.grad(y, inputs, gradient, allow_unused=True)
        return y.detach()

    return run


def selective(batch: int, length: int) -> tuple[Tensor, ...]:
    """u, delta, A, B, C and the first state, as a Mamba layer has them at first."""
    u, B, C = (torch.randn(batch, length, width) for width in (INNER, STATES, STATES))
    delta = torch.empty(batch, length, INNER).uniform_(-7, -2.3).exp_()
    A = -torch.arange(1.0, STATES + 1).expand(INNER, STATES)
    return u, delta, A, B, C, torch.zeros(batch, INNER, STATES)


def mamba_py() -> Operation:
    """The same as its MambaBlock computes it, from a state of zeros."""
    pscan = peer("mambapy.pscan", "mambapy==1.2.0").pscan

    def scan(u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, _: Tensor) -> Tensor:
        decay = torch.exp(delta[..., None] * A)
        h = pscan(decay, delta[..., None] * B[:, :, None] * u[..., None])
        return (h @ C[..., None]).squeeze(3)

    return scan


def mamba_py_passes(length: int) -> Callable[[], None]:
    """For a process of its own: what it computes stays there."""
    run = passes(mamba_py(), selective(1, length))

    def silent() -> None:
        run()

    return silent


def linear(batch: int, length: int) -> tuple[Tensor, ...]:
    """decay, v and the first state: complex, the decays just inside the unit circle."""
    angle, radius = torch.rand(CHANNELS) * 3, torch.empty(CHANNELS).uniform_(0.9, 0.999)
    v = torch.randn(batch, length, CHANNELS, dtype=torch.complex64)
    return torch.polar(radius, angle), v, torch.zeros_like(v[:, 0])


def decaying(batch: int, length: int) -> tuple[Tensor, ...]:
    """k, v, w, u of RWKV."""
    k, v = torch.randn(2, batch, length, CHANNELS).unbind(0)
    return k, v, -torch.linspace(-5, 3, CHANNELS).exp(), torch.randn(CHANNELS)


def from_nothing(recurrence: Callable[..., tuple[Tensor, object]]) -> Operation:
    """`wkv` from the empty state."""

    def run(k: Tensor, v: Tensor, w: Tensor, u: Tensor) -> Tensor:
        nothing = torch.zeros_like(k[:, 0])
        return recurrence(k, v, w, u, (nothing, nothing, torch.full_like(nothing, EMPTY_EXPONENT)))[0]

    return run


def same(runs: dict[str, Callable[[], Tensor]]) -> str:
    """Check that all compute the same; the path that ours took."""
    with record_paths() as paths:
        expected = runs["ours"]()
    for run in runs.values():
        torch.testing.assert_close(run(), expected, rtol=1e-3, atol=1e-4)
    return paths[0]


def growth(what: str, samples: Samples, lengths: tuple[int, int]) -> Figure:
    """The time of the longer over that of the shorter."""
    short, long = (f"ours {length}" for length in lengths)
    times = f"{1e3 * samples.median(short):.3g} ms and {1e3 * samples.median(long):.3g} ms"
    title = f"{what}: time of {lengths[1]} steps over that of {lengths[0]}"
    return ratio(title, samples.speedup(short, long), 9.0, times, samples.trust, at_most=True)


def measure_selective(quick: bool) -> list[Figure]:
    lengths = (64, 128) if quick else (1024, 8192)
    every: dict[str, Callable[[], object]] = {}
    path = ""
    for length in lengths:
        inputs = selective(1, length)
        runs = {
            "ours": passes(lambda *given: selective_scan(*given)[0], inputs),
            "torch": passes(
                lambda *given: _SelectiveScan.apply(chunked_forward, chunked_backward, *given)[0], inputs
            ),
        }
        path = same(runs | {"mamba.py": passes(mamba_py(), inputs)})
        every |= {f"{name} {length}": run for name, run in runs.items()}
        every[f"mamba.py {length}"] = Apart(mamba_py_passes, length)
    samples = interleave(every, rounds=7, quick=quick)
    figures = []
    for length, goal, stretch in zip(lengths, (18.0, 38.0), (30, 60), strict=True):
        theirs = f"mamba.py {length}"
        for name, least, note in (("ours", goal, f"{path}; stretch {stretch}"), ("torch", 1.0, "no kernel")):
            mine = f"{name} {length}"
            times = f"{1e3 * samples.median(mine):.3g} ms against {1e3 * samples.median(theirs):.4g} ms"
            what = f"Selective scan{' in plain torch' * (name == 'torch')} over mamba.py, {length} steps"
            figures.append(ratio(what, samples.speedup(mine, theirs), least, times, note, samples.trust))
    return [*figures, growth("Selective scan", samples, lengths)]


def measure_loop(what: str, case: Case, fast: Operation, loop: Operation, quick: bool) -> list[Figure]:
    """The fast path against the loop over time, at 1024 steps, and how it grows."""
    shortest, *longer = (64, 128, 256) if quick else (1024, 8192, 65536)
    figures = []
    for batch in (1, 8):
        inputs = case(batch, shortest)
        runs = {"ours": passes(fast, inputs), "loop": passes(loop, inputs)}
        path = same(runs)
        samples = interleave(runs, rounds=5, seconds=0.5, quick=quick)
        times = f"{1e3 * samples.median('ours'):.3g} ms against {1e3 * samples.median('loop'):.4g} ms"
        title = f"{what} over its loop, {shortest} steps, batch {batch}, {CHANNELS} channels"
        figures.append(ratio(title, samples.speedup("ours", "loop"), 10.0, times, path, samples.trust))
    runs = {f"ours {length}": passes(fast, case(1, length)) for length in (shortest, *longer)}
    samples = interleave(runs, seconds=0.5, quick=quick)
    return figures + [growth(what, samples, pair) for pair in pairwise((shortest, *longer))]


if __name__ == "__main__":
    given = options(__doc__)
    torch.manual_seed(0)
    keep_freed_memory()  # as `foveal train` does
    report(
        [
            *measure_selective(given.quick),
            *measure_loop("S5's scan", linear, linear_scan, linear_scan_reference, given.quick),
            *measure_loop(
                "RWKV's recurrence", decaying, from_nothing(wkv), from_nothing(wkv_reference), given.quick
            ),
        ],
        given,
    )
