"""The private parts of torch that Foveal uses, each beside a public way to the same result.

Another release of torch may lack a private part, or give it other arguments. So a private function is tried
on a small example at its first use. If the example fails, the public way is taken from then on, and a line
says so once. No other file of the package names a private part of torch, except
`inspection/operation_mode.py`, `studies/plan/torch_parts.py`, `distributed/bfloat16_weights.py` and
`distributed/weight_groups.py`.
"""

import sys
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from foveal.core.log import notify


def _small(*shape: int) -> Tensor:
    return torch.ones(shape, device="cpu")


def _try_flash_attention() -> None:
    q, mask = _small(1, 1, 2, 2), _small(1, 1, 2, 2)
    y, log_sum = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        q, q, q, 0.0, True, attn_mask=mask
    )
    backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
    _, _, _ = backward(q, q, q, q, y, log_sum, 0.0, True, attn_mask=mask)


def _try_version() -> None:
    with torch.inference_mode(False):  # tensors of inference have no version
        assert _small(1)._version == 0


EXAMPLES: dict[str, Callable[[], object]] = {
    "_foreach_mul_": lambda: torch._foreach_mul_([_small(1)], 2.0),
    "_foreach_clamp_min_": lambda: torch._foreach_clamp_min_([_small(1)], 0.0),
    "_foreach_clamp_max_": lambda: torch._foreach_clamp_max_([_small(1)], 0.0),
    "_foreach_lerp_": lambda: torch._foreach_lerp_([_small(1)], [_small(1)], 0.5),
    "_softmax_backward_data": lambda: torch._softmax_backward_data(
        _small(1, 1), _small(1, 1), -1, torch.float32
    ),
    "_is_mkldnn_bf16_supported": lambda: torch.ops.mkldnn._is_mkldnn_bf16_supported(),
    "_scaled_dot_product_flash_attention_for_cpu": _try_flash_attention,
    "_version": _try_version,
    "_forward_hooks": lambda: (nn.Module()._forward_hooks, nn.Module()._forward_pre_hooks),
}
"""A call of each private part, by its name."""


@cache
def has_private(name: str) -> bool:
    """Return whether this torch has a private part that works as expected. If not, say so once."""
    try:
        EXAMPLES[name]()
    except Exception as error:  # whatever a changed part raises, the public way does not need it
        reason = f"torch {torch.__version__} has no {name} as expected ({error})"
        notify(f"{reason}: a slower way computes the same")
        return False
    return True


def multiply_all(tensors: list[Tensor], factor: float) -> None:
    """Multiply tensors by a factor, in place."""
    if has_private("_foreach_mul_"):
        torch._foreach_mul_(tensors, factor)
        return
    for tensor in tensors:
        tensor.mul_(factor)


def clamp_all(tensors: list[Tensor], bound: float) -> None:
    """Clamp tensors to -bound .. bound, in place."""
    if has_private("_foreach_clamp_min_") and has_private("_foreach_clamp_max_"):
        torch._foreach_clamp_min_(tensors, -bound)
        torch._foreach_clamp_max_(tensors, bound)
        return
    for tensor in tensors:
        tensor.clamp_(-bound, bound)


def interpolate_all(tensors: list[Tensor], ends: list[Tensor], amount: float) -> None:
    """Move each tensor toward its end by a share `amount` of their difference, in place."""
    if has_private("_foreach_lerp_"):
        torch._foreach_lerp_(tensors, ends, amount)
        return
    for tensor, end in zip(tensors, ends, strict=True):
        tensor.lerp_(end, amount)


def softmax_backward(
    gradient: Float[Tensor, "*B S"], weights: Float[Tensor, "*B S"]
) -> Float[Tensor, "*B S"]:
    """Return the gradient for the inputs of a softmax over the last axis, from that for its `weights`."""
    if has_private("_softmax_backward_data"):
        return torch._softmax_backward_data(gradient, weights, -1, weights.dtype)
    precision = torch.promote_types(weights.dtype, torch.float32)
    dy, y = gradient.to(precision), weights.to(precision)
    return (y * (dy - (y * dy).sum(-1, keepdim=True))).to(weights.dtype)


def has_cpu_flash_attention() -> bool:
    """Return whether torch's attention kernel for CPUs can be called. There is no public way to its parts."""
    return has_private("_scaled_dot_product_flash_attention_for_cpu")


def cpu_flash_attention(q: Tensor, k: Tensor, v: Tensor, causal: bool, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return the attention, and the logarithms of the softmax's sums. `mask` is added to the scores."""
    y, log_sum = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        q, k, v, 0.0, causal, attn_mask=mask
    )
    return y, log_sum


def cpu_flash_attention_backward(
    dy: Tensor, q: Tensor, k: Tensor, v: Tensor, y: Tensor, log_sum: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients for q, k and v, of attention that is not causal except by its mask."""
    backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
    dq, dk, dv = backward(dy, q, k, v, y, log_sum, 0.0, False, attn_mask=mask)
    return dq, dk, dv


def has_bfloat16_lstm() -> bool:
    """Return whether oneDNN has an LSTM in bfloat16 for this processor. Without an answer: no."""
    return _has_bfloat16_lstm()


@cache
def _has_bfloat16_lstm() -> bool:
    return has_private("_is_mkldnn_bf16_supported") and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


# torch.compile can't trace the question. torch.compiler.assume_constant_result would import the compiler.
has_bfloat16_lstm._dynamo_marked_constant = True  # type: ignore[attr-defined]


def content_version(x: Shaped[Tensor, "..."]) -> int:
    """Return a number that changes when the content of `x` is written."""
    return x._version if has_private("_version") else hash(x.numpy(force=True).tobytes())


def may_have_hooks(module: nn.Module) -> bool:
    """Return whether hooks may run at a call of the module itself. Where torch does not say: yes."""
    if not has_private("_forward_hooks"):
        return True
    return bool(module._forward_hooks or module._forward_pre_hooks)


def may_be_compiled() -> bool:
    """Return whether a module of this process may be compiled. If torch's compiler is not imported: no.

    Its import takes a second. Where another torch has another name for it: yes.
    """
    compiler = "torch._dynamo"
    return compiler in sys.modules or find_spec(compiler) is None


def aten_operations(*names: str) -> tuple[Any, ...]:
    """Return the operations of these names that this torch has. No model can call the others."""
    return tuple(getattr(torch.ops.aten, name) for name in names if hasattr(torch.ops.aten, name))
