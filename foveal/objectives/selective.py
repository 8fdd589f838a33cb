"""Classification that learns the hard part of each batch, as a small model beside, the proxy, finds it."""

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from foveal.config import ConfigError
from foveal.core.module_facts import LayerGroups, layer_groups, merge_layer_groups
from foveal.core.result import ObjectiveOutput, Term
from foveal.core.state import State
from foveal.data.core.batching import ExampleBatch
from foveal.models.airbench import PROXY_NETWORK
from foveal.models.encoder import EncoderWithHead
from foveal.objectives.classification import ClassificationObjective
from foveal.store.sealed import unique_state_dict

PROXY_PREFIX = "proxy."
"""How the names of a proxy's weights begin."""


class ModelWithProxy(EncoderWithHead):
    """A model and a small one of the same classes, its `proxy`, which learns beside it."""

    beside = ("proxy",)

    def __init__(self, model: EncoderWithHead, proxy: EncoderWithHead):
        super().__init__(model.encoder, model.head)
        self.proxy = proxy

    def layer_groups(self) -> LayerGroups:
        """Return the parameters by their depth, each model's on its own."""
        return merge_layer_groups(super().layer_groups(), layer_groups(self.proxy))


def with_proxy(model: EncoderWithHead, channels: int, size: int, classes: int) -> ModelWithProxy:
    """Return a classifier of images of `channels` and `size` pixels with a new proxy beside it.

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

    A model without a proxy leaves out the run's; a model with one keeps its own where the run had none.
    """
    if not isinstance(model, ModelWithProxy):
        return {name: tensor for name, tensor in tensors.items() if not name.startswith(PROXY_PREFIX)}
    own = {PROXY_PREFIX + name: weight for name, weight in unique_state_dict(model.proxy).items()}
    return own | dict(tensors)


class SelectiveObjective(ClassificationObjective):
    """Of each batch to train on the `select_fraction` of which the model's proxy has the highest losses; the
    proxy learns the same ones ("selection via proxy", Coleman et al. 2020; batch by batch in Jordan's
    airbench96).

    What is easy soon teaches a large model nothing more, and a proxy of a twentieth of its cost finds it:
    with the half of each batch a training sees twice as many images in its time. A step's figures are of the
    hardest ones, and so worse than those of all. Evaluation is that of `ClassificationObjective`.
    """

    model: ModelWithProxy

    def __init__(
        self, model: ModelWithProxy, labels: tuple[str, ...], label_smoothing: float, select_fraction: float
    ):
        super().__init__(model, labels, label_smoothing)
        self.learner, self.proxy = (
            ClassificationObjective(learner, labels, label_smoothing) for learner in (model, model.proxy)
        )
        self.select_fraction = select_fraction

    def weights(self, batch: ExampleBatch) -> dict[str, float]:
        """As of `ClassificationObjective`; in training, where every label is known, of those that are
        learned."""
        if not self.model.training:
            return super().weights(batch)
        return dict.fromkeys(("loss", "proxy", *self.aux_names), float(self._count(batch)))

    def __call__(self, batch: ExampleBatch, carry: State) -> tuple[ObjectiveOutput, State]:
        if not self.model.training:
            return super().__call__(batch, carry)
        batch = batch.to(next(self.model.parameters()).device)
        with torch.no_grad():  # a second time for what is learned costs less than a way back for all
            hardest = self.proxy.per_example_loss(batch).topk(self._count(batch)).indices.sort().values
        chosen = batch.take(hardest)
        result, carry = self.learner(chosen, carry)
        its_own = Term(self.proxy.per_example_loss(chosen).sum(), float(len(hardest)))
        return replace(result, terms=result.terms | {"proxy": its_own}), carry

    def _count(self, batch: ExampleBatch) -> int:
        return max(1, round(self.select_fraction * len(batch.rows)))
