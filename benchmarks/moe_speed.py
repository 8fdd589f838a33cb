"""Speed of a mixture of experts against a dense MLP of the same active compute, forward and backward.

8 experts of width 384 and hidden width 1536, 2 of them active, against an MLP of hidden width 3072: the same
number of multiply-adds for a vector. The experts have four times the weights, so four times the weight
gradients to write. The allocator keeps freed memory, as in training.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.timing import Measurement, interleave, parse_options, ratio, report
from foveal.core.runtime import Precision, autocast, keep_freed_memory
from foveal.layers.blocks.feedforward import MLP
from foveal.layers.blocks.moe import Experts
from foveal.ops.jit.dispatch import reference_only

WIDTH, HIDDEN, EXPERTS, ACTIVE = 384, 1536, 8, 2
ROW = 256


def passes(layer: nn.Module, x: Tensor, precision: Precision) -> Callable[[], Tensor]:
    """Return a function for one forward and backward pass, with new gradients as in a training step."""

    def run() -> Tensor:
        for parameter in (x, *layer.parameters()):
            parameter.grad = None
        with autocast(x.device, precision):
            y = layer(x, None)[0] if isinstance(layer, Experts) else layer(x)
        y.float().square().mean().backward()
        return y.detach()

    return run


def measure(tokens: int, goal: float | None, precision: Precision, quick: bool) -> Measurement:
    torch.manual_seed(0)
    x = torch.randn(max(1, tokens // ROW), min(tokens, ROW), WIDTH, requires_grad=True)
    experts = Experts(WIDTH, HIDDEN, EXPERTS, ACTIVE)
    run = passes(experts, x, precision)
    with reference_only():
        expected = run()
    assert (run() - expected).norm() < 0.01 * expected.norm(), "not the same as the plain loop"
    dense = passes(MLP(WIDTH, ACTIVE * HIDDEN), x, precision)
    samples = interleave({"experts": run, "dense": dense}, quick=quick)
    times = [f"{1e3 * samples.median(name):.1f}" for name in ("experts", "dense")]
    return ratio(
        f"{EXPERTS} experts, {ACTIVE} active, over an MLP of the same compute, {tokens} tokens, {precision}",
        samples.speedup("experts", "dense"),
        goal,
        f"{times[0]} ms against {times[1]} ms",
        samples.trust,
    )


if __name__ == "__main__":
    options = parse_options(__doc__)
    keep_freed_memory()
    cases: list[tuple[int, float | None, Precision]] = [
        (4096, 0.95, "float32"),
        (256, 0.6, "float32"),
        (32, None, "float32"),
        (4096, None, "bfloat16"),
        (256, None, "bfloat16"),
    ]
    cases = [(8, None, "float32"), (8, None, "bfloat16")] if options.quick else cases
    report([measure(*case, options.quick) for case in cases], options)
