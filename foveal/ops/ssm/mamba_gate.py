"""The output of Mamba's mixer: the skip connection around the scan, and the gate."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from foveal.ops.jit.dispatch import use_fast_path
from foveal.ops.jit.launch import Kernel, channel_tasks, pad_to_lanes

_forward = Kernel("mamba_gate", "forward")
_backward = Kernel("mamba_gate", "backward")


def mamba_gate(
    y: Float[Tensor, "B T E"], u: Float[Tensor, "B T E"], skip: Float[Tensor, " E"], z: Float[Tensor, "B T E"]
) -> Float[Tensor, "B T E"]:
    """Return `(y + skip * u) * silu(z)` (Gu and Dao 2023, figure 3). The kernel needs one pass over memory.

    For a single input, torch's operations are faster.
    """
    kernel = y.shape[1] > 1 and _forward.usable(y, u, skip) and _backward.usable()
    if use_fast_path("mamba_gate", "kernel", kernel):
        inputs = map(pad_to_lanes, (y, u, skip, z.to(y.dtype)))
        return _MambaGate.apply(*inputs)[:, :, : y.shape[2]]  # type: ignore[no-untyped-call]
    return torch.addcmul(y, skip, u) * F.silu(z)


class _MambaGate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, y: Tensor, u: Tensor, skip: Tensor, z: Tensor) -> Tensor:
        ctx.save_for_backward(y, u, skip, z)
        (B, T, E), output = y.shape, torch.empty_like(y)
        shares = channel_tasks(B, E)
        _forward(B * shares, y, u, skip, z, output, T, E, shares)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, doutput: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        y, u, skip, z = ctx.saved_tensors
        (B, T, E), doutput = y.shape, doutput.contiguous()
        dy, du, dz, dskip = *(torch.empty_like(y) for _ in range(3)), y.new_empty(B, E)
        shares = channel_tasks(B, E)
        _backward(B * shares, y, u, skip, z, doutput, dy, du, dskip, dz, T, E, shares)
        return dy, du, dskip.sum(0), dz
