"""What of a model stays as it is while the rest is trained (`training.freeze`)."""

from torch import nn

from foveal.config.sections import FreezeName
from foveal.core.errors import UserError
from foveal.layers.grid_convolution import BatchNorm2d
from foveal.training.optim import depths


def freeze(model: nn.Module, what: FreezeName) -> None:
    """Freeze `what`: each of the names freezes what those before it do, and more.

    `none`; `norms`: batch norms, with the statistics that run with the batches, which so few images would
    only blur; `below-last-block`: all that is before the encoder's last block, or the model's, if there is no
    encoder; `encoder`: the whole of it. UserError if the model has nothing of that kind.
    """
    if what == "none":
        return
    encoder = dict(model.named_children()).get("encoder")
    if what == "encoder":
        if encoder is None:
            raise UserError("training.freeze=encoder: this model has none; leave it out")
        encoder.requires_grad_(False)
        return
    norms = [module for module in model.modules() if isinstance(module, BatchNorm2d)]
    for norm in norms:
        norm.requires_grad_(False)
    if what == "norms":
        if not norms:
            raise UserError("training.freeze=norms: this model has no batch norm; leave it out")
        return
    named = dict(model.named_parameters())
    lower = [name for name, depth in depths(named).items() if depth > 1]
    if not lower:
        raise UserError("training.freeze=below-last-block: this model has nothing below it; leave it out")
    for name in lower:
        named[name].requires_grad_(False)
