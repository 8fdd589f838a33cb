"""Classification that learns the hard part of each batch, which a small model, the proxy, selects."""

from collections.abc import Mapping
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from foveal.config import ConfigError
from foveal.core.module_facts import LayerGroups, layer_groups, merge_layer_groups
from foveal.core.result import ObjectiveOutput, Term
from foveal.core.state import State
from foveal.core.whole_batch import current_slot, gather_slots
from foveal.data.core.batching import ExampleBatch
from foveal.models.airbench import PROXY_NETWORK
from foveal.models.encoder import EncoderWithHead
from foveal.objectives.classification import ClassificationObjective
from foveal.store.sealed import unique_state_dict

PROXY_PREFIX = "proxy."
"""The prefix of the names of a proxy's weights."""


class ModelWithProxy(EncoderWithHead):
    """A model, and its `proxy`: a small model for the same classes, which is trained alongside."""

    auxiliary = ("proxy",)

    def __init__(self, model: EncoderWithHead, proxy: EncoderWithHead):
        super().__init__(model.encoder, model.head)
        self.proxy = proxy

    def layer_groups(self) -> LayerGroups:
        """Return the parameters of both models grouped by depth, each model on its own."""
        return merge_layer_groups(super().layer_groups(), layer_groups(self.proxy))


def with_proxy(model: EncoderWithHead, channels: int, size: int, classes: int) -> ModelWithProxy:
    """Return a classifier of images of `channels` and `size` pixels, together with a new proxy.

    Raises: ConfigError: the images are too small for the proxy.
    """
    encoder = PROXY_NETWORK.make_encoder(channels, small=True)
    if min(encoder.grid(size)) < 1:
        raise ConfigError(
            f"task.select_fraction: images of {size}x{size} are too small for its proxy: "
            "raise data.image.size, or leave task.select_fraction out"
        )
    head = PROXY_NETWORK.make_head(encoder.width, (1, 1), classes, 0.0)
    return ModelWithProxy(model, EncoderWithHead(encoder, head))


def match_proxy(model: object, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return a run's weights for a model with or without a proxy.

    A model without a proxy ignores the proxy's weights of the run. A model with a proxy keeps its proxy's own
    weights if the run had none.
    """
    if not isinstance(model, ModelWithProxy):
        return {name: tensor for name, tensor in tensors.items() if not name.startswith(PROXY_PREFIX)}
    own = {PROXY_PREFIX + name: weight for name, weight in unique_state_dict(model.proxy).items()}
    return own | dict(tensors)


class SelectiveObjective(ClassificationObjective):
    """Classification on the `select_fraction` of each batch for which the proxy has the highest losses.

    The proxy learns the same rows ("selection via proxy", Coleman et al. 2020; batch by batch in Jordan's
    airbench96). A large model soon learns nothing more from easy images, and a proxy with a twentieth of the
    model's cost finds the easy images. With half of each batch, training sees twice as many images in the
    same time. The metrics of a step are those of the selected rows, and so worse than those of all rows.
    Evaluation is that of `ClassificationObjective`.
    """

    model: ModelWithProxy
    reads_whole_batch = True

    def __init__(
        self, model: ModelWithProxy, labels: tuple[str, ...], label_smoothing: float, select_fraction: float
    ):
        super().__init__(model, labels, label_smoothing)
        self.learner, self.proxy = (
            ClassificationObjective(learner, labels, label_smoothing) for learner in (model, model.proxy)
        )
        self.select_fraction = select_fraction

    def weights(self, batch: ExampleBatch) -> dict[str, float]:
        """Return the weight of each term. In training, the weight is that of the selected rows, whose labels
        are all known."""
        if not self.model.training:
            return super().weights(batch)
        return dict.fromkeys(("loss", "proxy", *self.aux_names), float(self._count(len(batch.rows))))

    def __call__(self, batch: ExampleBatch, carry: State) -> tuple[ObjectiveOutput, State]:
        if not self.model.training:
            return super().__call__(batch, carry)
        batch = batch.to(next(self.model.parameters()).device)
        with torch.no_grad():  # a second forward pass of some rows costs less than a backward pass of all
            hardest = self._hardest(self.proxy.per_example_loss(batch))
        selected = batch.take(hardest)
        result, carry = self.learner(selected, carry)
        proxy_term = Term(self.proxy.per_example_loss(selected).sum(), float(len(hardest)))
        return replace(result, terms=result.terms | {"proxy": proxy_term}), carry

    def _hardest(self, losses: Float[Tensor, " B"]) -> Int[Tensor, " N"]:
        """Return the rows of this slot that belong to the rows with the highest `losses` of the whole
        batch."""
        slot = current_slot()
        if slot is None:
            return losses.topk(self._count(len(losses))).indices.sort().values
        counts = gather_slots(losses.new_tensor([len(losses)])).flatten().int().tolist()
        padded = F.pad(losses, (0, max(counts) - len(losses)))
        whole = torch.cat([row[:count] for row, count in zip(gather_slots(padded), counts, strict=True)])
        first = sum(counts[: slot.index])
        hardest = whole.topk(self._count(len(whole))).indices.sort().values - first
        return hardest[(hardest >= 0) & (hardest < len(losses))]

    def _count(self, rows: int) -> int:
        """Return the number of selected rows of a batch."""
        return max(1, round(self.select_fraction * rows))
