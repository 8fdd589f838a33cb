"""Cross-entropy after a projection whose classes are split among ranks: no rank has all logits of a row."""

from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from foveal.core.runtime import at_least_float32
from foveal.distributed.tensor_group import TensorGroup
from foveal.ops.cross_entropy import CrossEntropySums


def split_cross_entropy(
    h: Float[Tensor, "N D"],
    weight: Float[Tensor, "v D"],
    bias: Float[Tensor, " v"] | None,
    targets: Int[Tensor, " N"],
    classes: int,
    group: TensorGroup,
    label_smoothing: float = 0.0,
) -> CrossEntropySums:
    """Return `cross_entropy_reference` of `W h + b`, of which this rank has the rows `group.rows(classes)`
    (Shoeybi et al. 2019, section 3).

        total = top + log sum over ranks of sum_v exp(logit_v - top),   top = the largest logit of all ranks
    """
    logits = at_least_float32(F.linear(group.enter(h), weight, bias))
    rows = group.rows(classes)
    top = group.maximum(logits.amax(1))
    total = group.leave((logits - top[:, None]).exp().sum(1)).log() + top
    is_own = (targets >= rows.start) & (targets < rows.stop)
    place = (targets - rows.start).clamp(0, logits.shape[1] - 1)
    own = logits.gather(1, place[:, None]).squeeze(1)
    nats = total - group.leave(own.where(is_own, 0.0))
    smoothed = nats
    if label_smoothing:
        mean = group.leave(logits.sum(1)) / classes
        smoothed = (1 - label_smoothing) * nats + label_smoothing * (total - mean)
    return CrossEntropySums(smoothed.sum(), nats.detach().sum())
