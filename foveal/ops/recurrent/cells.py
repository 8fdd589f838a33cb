"""Recurrent cells as equations, and the loop that runs any of them.

Each step takes `p`, the part of the equation that depends on the input alone (`W_x x_t + b`, computed for the
whole sequence in one product), and the previous state. It returns the next state. `D` is the input's width,
`H` the state's, and `G` the width of all gates together (3H or 4H).
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveal.core.runtime import without_autocast
from foveal.core.state import State, map_state
from foveal.core.torch_private import has_bfloat16_lstm
from foveal.ops.linear import linear
from foveal.ops.padding import last_valid, sequence_mask, zero_padding

StepFunction = Callable[[Tensor, State], tuple[Tensor, State]]


def run_recurrence(
    step: StepFunction,
    projected: Float[Tensor, "B T P"],
    state: State,
    lengths: Int[Tensor, " B"] | None = None,
) -> tuple[Float[Tensor, "B T H"], State]:
    """Run `y_t, s_t = step(p_t, s_(t-1))` for t = 1..T. A row keeps its state after its length.

    The sequence is split with `unbind`: indexing it step by step makes the backward pass O(T^2).
    """
    alive = None if lengths is None else sequence_mask(lengths, projected.shape[1])[:, :, None].unbind(1)
    outputs = []
    for t, p in enumerate(projected.unbind(1)):
        y, new = step(p, state)
        state = new if alive is None else map_state(lambda n, o, t=t: torch.where(alive[t], n, o), new, state)
        outputs.append(y)
    return torch.stack(outputs, 1), state


def elman_step(
    p: Float[Tensor, "B H"], h: Float[Tensor, "B H"], W_h: Float[Tensor, "H H"], relu: bool = False
) -> Float[Tensor, "B H"]:
    """Return `h_t = tanh(W_h h_(t-1) + W_x x_t + b)` (Elman 1990), or with ReLU (Le et al. 2015)."""
    a = p + linear(h, W_h)
    return a.relu() if relu else a.tanh()


def lstm_gates(
    p: Float[Tensor, "B G"], h: Float[Tensor, "B H"], W_h: Float[Tensor, "G H"]
) -> tuple[Float[Tensor, "B H"], Float[Tensor, "B H"], Float[Tensor, "B H"], Float[Tensor, "B H"]]:
    """Return the gates i, f, g and o of an LSTM, g in -1 .. 1 and the others in 0 .. 1."""
    i, f, g, o = (p + linear(h, W_h)).chunk(4, 1)
    return i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()


def lstm_update(
    gates: tuple[Tensor, Tensor, Tensor, Tensor], c: Float[Tensor, "B H"]
) -> tuple[Float[Tensor, "B H"], Float[Tensor, "B H"]]:
    """Return `h_t` and `c_t` of an LSTM from its gates."""
    i, f, g, o = gates
    c = f * c + i * g
    return o * c.tanh(), c


def lstm_step(
    p: Float[Tensor, "B G"], h: Float[Tensor, "B H"], c: Float[Tensor, "B H"], W_h: Float[Tensor, "G H"]
) -> tuple[Float[Tensor, "B H"], Float[Tensor, "B H"]]:
    """Return `h_t = o * tanh(c_t)` and `c_t = f * c_(t-1) + i * g` (Hochreiter and Schmidhuber 1997; Gers et
    al. 2000).

    The rows of `p` and `W_h` hold the gates in the order i, f, g, o, as in torch.
    """
    return lstm_update(lstm_gates(p, h, W_h), c)


def gru_gates_reset_after(
    p: Float[Tensor, "B G"], h: Float[Tensor, "B H"], W_h: Float[Tensor, "G H"], b_n: Float[Tensor, " H"]
) -> tuple[Float[Tensor, "B H"], Float[Tensor, "B H"], Float[Tensor, "B H"]]:
    """Return the gates r and z and the new values n of `gru_step_reset_after`."""
    p_r, p_z, p_n = p.chunk(3, 1)
    a_r, a_z, a_n = linear(h, W_h).chunk(3, 1)
    r, z = (p_r + a_r).sigmoid(), (p_z + a_z).sigmoid()
    return r, z, (p_n + r * (a_n + b_n)).tanh()


def gru_step_reset_after(
    p: Float[Tensor, "B G"], h: Float[Tensor, "B H"], W_h: Float[Tensor, "G H"], b_n: Float[Tensor, " H"]
) -> Float[Tensor, "B H"]:
    """Run a GRU step whose reset gate multiplies *after* the recurrent product, as in cuDNN and torch.

    `n = tanh(p_n + r * (W_n h + b_n))`, `h_t = z * h + (1 - z) * n`, with gates in the order r, z, n.
    """
    _, z, n = gru_gates_reset_after(p, h, W_h, b_n)
    return gru_update(z, n, h)


def gru_update(
    z: Float[Tensor, "B H"], n: Float[Tensor, "B H"], h: Float[Tensor, "B H"]
) -> Float[Tensor, "B H"]:
    """Return `h_t = z * h + (1 - z) * n`."""
    return z * h + (1 - z) * n


def gru_gates_reset_before(
    p: Float[Tensor, "B G"], h: Float[Tensor, "B H"], W_h: Float[Tensor, "G H"]
) -> tuple[Float[Tensor, "B H"], Float[Tensor, "B H"], Float[Tensor, "B H"]]:
    """Return the gates r and z and the new values n of `gru_step_reset_before`."""
    H = h.shape[1]
    r, z = (p[:, : 2 * H] + linear(h, W_h[: 2 * H])).sigmoid().chunk(2, 1)
    return r, z, (p[:, 2 * H :] + linear(r * h, W_h[2 * H :])).tanh()


def gru_step_reset_before(
    p: Float[Tensor, "B G"], h: Float[Tensor, "B H"], W_h: Float[Tensor, "G H"]
) -> Float[Tensor, "B H"]:
    """Run a step of the GRU as published (Cho et al. 2014): `n = tanh(p_n + W_n (r * h))`.

    The gates are in the order r, z, n.
    """
    _, z, n = gru_gates_reset_before(p, h, W_h)
    return gru_update(z, n, h)


def fused_elman(
    x: Float[Tensor, "B T D"],
    h: Float[Tensor, "B H"],
    weights: list[Tensor],
    relu: bool,
    lengths: Int[Tensor, " B"] | None,
) -> tuple[Float[Tensor, "B T H"], Float[Tensor, "B H"]]:
    """Run torch's kernel for `elman_step`. `weights` is `[W_x, W_h, b_x, b_h]`."""
    y, last = _run_fused(torch.rnn_relu if relu else torch.rnn_tanh, x, h[None], weights)
    return y, last[0] if lengths is None else last_valid(h, y, lengths)


def fused_gru(
    x: Float[Tensor, "B T D"],
    h: Float[Tensor, "B H"],
    weights: list[Tensor],
    lengths: Int[Tensor, " B"] | None,
) -> tuple[Float[Tensor, "B T H"], Float[Tensor, "B H"]]:
    """Run torch's kernel for `gru_step_reset_after`. `weights` is `[W_x, W_h, b_x, b_h]`."""
    y, last = _run_fused(torch.gru, x, h[None], weights)
    return y, last[0] if lengths is None else last_valid(h, y, lengths)


GATE_SATURATION = 1e4
"""A gate's input for which its sigmoid is exactly 0 (negative) or 1 (positive) in every precision."""


def fused_lstm(
    x: Float[Tensor, "B T D"],
    h: Float[Tensor, "B H"],
    c: Float[Tensor, "B H"],
    weights: list[Tensor],
    lengths: Int[Tensor, " B"] | None,
) -> tuple[Float[Tensor, "B T H"], Float[Tensor, "B H"], Float[Tensor, "B H"]]:
    """Run torch's kernel for `lstm_step` (oneDNN on a CPU). `weights` is `[W_x, W_h, b_x, b_h]`.

    The kernel supports no lengths, and returns only the last cell state. So the padding becomes an additional
    input, which closes the input gate and opens the forget gate: `c_t = 1 * c_(t-1) + 0 * g`, exactly.
    """
    if lengths is not None:
        H = h.shape[1]
        W_x, *others = weights
        column = W_x.new_zeros(4, H, 1)
        column[0], column[1] = -GATE_SATURATION, GATE_SATURATION
        padding = ~sequence_mask(lengths, x.shape[1])[:, :, None]
        x = torch.cat([zero_padding(x, lengths), padding.to(x.dtype)], 2)
        weights = [torch.cat([W_x, column.flatten(0, 1)], 1), *others]
    y, last, cell = _run_fused(torch.lstm, x, (h[None], c[None]), weights)
    return y, last[0] if lengths is None else last_valid(h, y, lengths), cell[0]


def _run_fused(
    run: Callable[..., tuple[Tensor, ...]], x: Float[Tensor, "B T D"], state: State, weights: list[Tensor]
) -> tuple[Tensor, ...]:
    """Run one layer with torch's `run`.

    The layer runs in float32 where torch has no bfloat16 kernel: oneDNN's LSTM on processors without AVX-512,
    and all of cuDNN's kernels. For these, autocast would choose float16, in which small gradients underflow.
    So the layer runs in float32 with float16 too.
    """
    device_type = x.device.type
    lowers = not x.is_meta and torch.is_autocast_enabled(device_type)  # the device meta has no autocast
    precision = torch.get_autocast_dtype(device_type) if lowers else x.dtype
    missing = device_type != "cpu" or (run is torch.lstm and not has_bfloat16_lstm())
    if precision == torch.float16 or (precision == torch.bfloat16 and missing):
        with without_autocast(x.device):
            state32 = map_state(lambda part: part.float(), state)
            outputs = _run_fused(run, x.float(), state32, [part.float() for part in weights])
        return tuple(part.to(precision) for part in outputs)
    if device_type == "cuda":
        weights = _in_one_buffer(weights)
    return run(x, state, weights, True, 1, 0.0, torch.is_grad_enabled(), False, True)


def _in_one_buffer(tensors: list[Tensor]) -> list[Tensor]:
    """Return copies that lie in memory one after the other, as cuDNN reads the weights of a layer.

    cuDNN would copy other weights itself, and warn of the memory.
    """
    buffer = torch.cat([tensor.flatten() for tensor in tensors])
    parts = torch.split(buffer, [tensor.numel() for tensor in tensors])
    return [part.view(tensor.shape) for part, tensor in zip(parts, tensors, strict=True)]
