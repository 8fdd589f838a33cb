"""Layers of attention with given weights, as if they had been captured."""

from typing import Any

from jaxtyping import Float
from torch import Tensor

from foveal.inspection.attention.layers import AttentionLayer
from foveal.inspection.capture.record import Record


def layer_of(weights: Float[Tensor, "H T S"], kind: str = "self", **more: Any) -> AttentionLayer:
    record = Record("stack/weights", 1 << 30)
    record.kept.append(weights[None])
    queries, keys = (
        tuple(f"{axis}{i}" for i in range(size)) for axis, size in zip("qk", weights.shape[1:], strict=True)
    )
    return AttentionLayer("stack", record, kind, queries, keys, **more)
