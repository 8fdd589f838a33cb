"""What of a model stays as it is while the rest is trained (`training.freeze`)."""

from torch import nn

from foveal.config.sections import FreezeName
from foveal.core.errors import UserError
from foveal.layers.vision.conv2d import BatchNorm2d
from foveal.objectives.selective_model import PROXY_PREFIX
from foveal.training.layer_depth import layer_depths

ENCODER_PATH, IMAGE_ENCODER_PATH = "encoder", "encoder.parts.source"


def freeze(model: nn.Module, what: FreezeName) -> None:
    """Freeze `what`: each of the names freezes what those before it do, and more.

    `none`; `norms`: batch norms, with the statistics that run with the batches, which so few images would
    only blur; `below-last-block`: all that is before the encoder's last block, or the model's, if there is no
    encoder; `encoder`: the whole of it. Of an encoder that reads questions too it is what reads the images:
    that is what another run can lend. A proxy beside the model learns in any case: it may be a new one.
    UserError if the model has nothing of that kind.
    """
    if what == "none":
        return
    modules = dict(model.named_modules())
    whole = IMAGE_ENCODER_PATH if IMAGE_ENCODER_PATH in modules else ENCODER_PATH
    if what == "encoder":
        if whole not in modules:
            raise UserError("training.freeze=encoder: this model has none; leave it out")
        modules[whole].requires_grad_(False)
        return
    own = [module for name, module in modules.items() if not name.startswith(PROXY_PREFIX)]
    norms = [module for module in own if isinstance(module, BatchNorm2d)]
    for norm in norms:
        norm.requires_grad_(False)
    if what == "norms":
        if not norms:
            raise UserError("training.freeze=norms: this model has no batch norm; leave it out")
        return
    lowest = f"{whole}." if whole in modules else ""
    named = {name: weight for name, weight in model.named_parameters() if name.startswith(lowest)}
    lower = [name for name, depth in layer_depths(named).items() if depth > 1]
    if not lower:
        raise UserError("training.freeze=below-last-block: this model has nothing below it; leave it out")
    for name in lower:
        named[name].requires_grad_(False)
