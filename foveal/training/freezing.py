"""What of a model stays as it is while the rest is trained (`training.freeze`)."""

from torch import nn

from foveal.config.sections import FreezeName
from foveal.core.errors import UserError
from foveal.core.module_facts import layer_groups, lendable_encoder, norms_with_statistics


def freeze(model: nn.Module, what: FreezeName) -> None:
    """Freeze `what`: each of the names freezes what those before it do, and more.

    `none`; `norms`: batch norms, with the statistics that run with the batches, which so few images would
    only blur; `below-last-block`: all that is before the encoder's last block, or the model's, if there is no
    encoder; `encoder`: the whole of it. Of an encoder with several parts only the part that another run can
    lend is frozen. A model beside, such as a proxy, learns in any case: it may be a new one.

    Raises: UserError: the model has nothing of that kind.
    """
    encoder = lendable_encoder(model)
    if what == "none":
        return
    if what == "encoder":
        if encoder is None:
            raise UserError("training.freeze=encoder: this model has none; leave it out")
        encoder.requires_grad_(False)
        return
    norms = norms_with_statistics(model)
    for norm in norms:
        norm.requires_grad_(False)
    if what == "norms":
        if not norms:
            raise UserError("training.freeze=norms: this model has no batch norm; leave it out")
        return
    lower = [weight for group in layer_groups(encoder or model)[2:] for weight in group]
    if not lower:
        raise UserError("training.freeze=below-last-block: this model has nothing below it; leave it out")
    for weight in lower:
        weight.requires_grad_(False)
