"""The parts of a model that are not trained (`training.freeze`)."""

from torch import nn

from foveal.config.sections import FreezeName
from foveal.core.errors import UserError
from foveal.core.module_facts import layer_groups, norms_with_statistics, reusable_encoder


def freeze(model: nn.Module, what: FreezeName) -> None:
    """Freeze parts of a model. Each choice freezes everything that the previous choices freeze, and more.

    `none` freezes nothing. `norms` freezes batch norms with their running statistics, of which a few images
    would be a bad estimate. `below-last-block` freezes everything before the last block of the encoder, or of
    the model if there is no encoder. `encoder` freezes the whole encoder. Of an encoder with several parts,
    only the part that another run can reuse is frozen. A model trained alongside, such as a proxy, is never
    frozen, because it may be new.

    Raises: UserError: the model has no such part.
    """
    encoder = reusable_encoder(model)
    if what == "none":
        return
    if what == "encoder":
        if encoder is None:
            raise UserError("training.freeze=encoder: this model has no encoder; leave it out")
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
        raise UserError(
            "training.freeze=below-last-block: this model has no layers below its last block; leave it out"
        )
    for weight in lower:
        weight.requires_grad_(False)
