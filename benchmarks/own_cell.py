"""A cell written as plain equations, run by the generic recurrence, against `torch.nn.LSTM`.

The cell is an LSTM without a kernel, so both sides compute the same. Two comparisons: the layer alone,
forward and backward, and the whole training step, where the second model has our LSTM on its default path,
torch's kernel.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.lstm_speed import subject
from benchmarks.timing import Measurement, interleave, parse_options, ratio, report
from foveal.layers.mixers.recurrent import Recurrent, RecurrentCell
from foveal.training.optim import Optimizer


class OwnCell(RecurrentCell):
    """`i, f, g, o = W_x x_t + W_h h_(t-1) + b`; `c_t = f * c_(t-1) + i * g`; `h_t = o * tanh(c_t)`."""

    def __init__(self, d_in: int, width: int):
        super().__init__()
        self.d_in, self.d_out, self.sizes = d_in, width, {"h": width, "c": width}
        self.input = nn.Linear(d_in, 4 * width)
        self.hidden = nn.Linear(width, 4 * width, bias=False)

    def reset_parameters(self) -> None:
        for linear in (self.input, self.hidden):
            linear.reset_parameters()

    def project(self, x: Tensor) -> Tensor:
        return self.input(x)

    def step(self, p: Tensor, state: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        i, f, g, o = (p + self.hidden(state["h"])).chunk(4, 1)
        c = f.sigmoid() * state["c"] + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        return h, {"h": h, "c": c}

    def with_weights(self, weight_input: Tensor, weight_hidden: Tensor, bias: Tensor) -> "OwnCell":
        """Copy an LSTM's weights into the cell, and return the cell."""
        with torch.no_grad():
            self.input.weight.copy_(weight_input)
            self.input.bias.copy_(bias)
            self.hidden.weight.copy_(weight_hidden)
        return self


def forward_and_backward(mixer: nn.Module, x: Tensor, gradient: Tensor) -> Callable[[], Tensor]:
    """Return a function that runs forward and backward of a layer, and returns the output."""

    def run() -> Tensor:
        x.grad = None
        mixer.zero_grad()
        y, _ = mixer(x)
        y.backward(gradient)
        return y

    return run


def measure_layer(width: int, batch: int, chunk: int, goal: float, quick: bool) -> Measurement:
    """Measure the layer alone. Its outputs are first compared with those of `nn.LSTM`."""
    kernel: Any = nn.LSTM(width, width, batch_first=True)
    nn.init.zeros_(kernel.bias_hh_l0)
    own = OwnCell(width, width).with_weights(kernel.weight_ih_l0, kernel.weight_hh_l0, kernel.bias_ih_l0)
    x, gradient = torch.randn(batch, chunk, width, requires_grad=True), torch.randn(batch, chunk, width)
    runs = {
        "own": forward_and_backward(Recurrent(own), x, gradient),
        "kernel": forward_and_backward(kernel, x, gradient),
    }
    torch.testing.assert_close(runs["own"](), runs["kernel"](), rtol=1e-4, atol=1e-5)
    samples = interleave(runs, quick=quick)
    title = f"Own cell over nn.LSTM, layer alone, hidden {width}, batch {batch}, chunk {chunk}"
    return ratio(title, samples.speedup("own", "kernel"), goal, samples.trust)


def measure_training(width: int, batch: int, chunk: int, goal: float, quick: bool) -> Measurement:
    """Measure the training step. The first losses are compared before."""
    kernel: Any
    own: Any
    kernel, own = subject(width, batch, chunk), subject(width, batch, chunk)
    cell = kernel.model.stack.blocks[0].mixer.cell
    copied = OwnCell(width, width).with_weights(cell.weight_input, cell.weight_hidden, cell.bias)
    own.model.stack.blocks[0].mixer = Recurrent(copied)
    own.optimizer = Optimizer(own.model, own.config.optimizer)
    first, expected = own(), kernel()
    assert math.isclose(first, expected, rel_tol=1e-5), f"not the same model: {first} and {expected}"
    samples = interleave({"own": own, "kernel": kernel}, quick=quick)
    title = f"Own cell over LSTM, training, hidden {width}, batch {batch}, chunk {chunk}"
    speed = f"{own.tokens / samples.median('own'):,.0f} tokens/s"
    return ratio(title, samples.speedup("own", "kernel"), goal, speed, samples.trust)


if __name__ == "__main__":
    options = parse_options(__doc__)
    sizes = (
        [(128, 4, 8, 0.4), (512, 4, 8, 0.75)] if options.quick else [(128, 64, 64, 0.4), (512, 64, 100, 0.75)]
    )
    report(
        [measure(*size, options.quick) for size in sizes for measure in (measure_layer, measure_training)],
        options,
    )
