"""The settings of training that come with an image network, or with an optimizer, that the user names."""

from collections.abc import Mapping, Sequence
from typing import Any

from foveal.config import OptimizerConfig, parse_overrides, validate_section
from foveal.config.sections import DECOUPLED_DECAY
from foveal.core.log import Log
from foveal.models.image_networks import published_input, smallest_size, training_settings
from foveal.models.network_registry import NETWORKS

USUAL_RATES = {
    "sgd": 0.2,
    "momentum": 0.05,
    "adagrad": 1e-2,
    "rmsprop": 5e-4,
    "adam": 1e-3,
    "adamw": 1e-3,
    "muon": 4e-3,
}
"""Learning rates with which the optimizers train alike; only their ratios matter."""


def network_overrides(name: str) -> list[str]:
    """Return the settings of a published network, for images of the published size, and of its training."""
    channels, size, _ = published_input(name)
    image = f"data.image.channels={channels}", f"data.image.size={size}"
    return [f"model.encoder.network={name}", *image, *training_settings(name)]


def network_recipe(preset: Mapping[str, Any], settings: Sequence[str], log: Log) -> list[str]:
    """Return the settings of training, and the size of images, for the network that `settings` name in place
    of the preset's. The log says which."""
    own, encoder = parse_overrides(settings), preset["model"]["encoder"]
    chosen = encoder | own.get("model", {}).get("encoder", {})
    name, size = chosen["network"], preset["data"]["image"]["size"]
    if name == encoder["network"] or name not in NETWORKS or chosen["kind"] != encoder["kind"]:
        return []
    added = list(training_settings(name))
    if chosen.get("stem") != "small" and (larger := smallest_size(name, size)) > size:
        added.append(f"data.image.size={larger}")
    _log_recipe(f"{name} is trained", added, settings, log)
    return added


def optimizer_recipe(base: Mapping[str, Any], settings: Sequence[str], log: Log) -> list[str]:
    """Return the learning rate, and the weight decay, for the optimizer that `settings` name in place of that
    of `base`. The log says which.

    The rate of `base` changes by the ratio of the usual rates. A decoupled weight decay is left out if the
    new optimizer would add the decay to the gradient.
    """
    old = validate_section(OptimizerConfig, base.get("optimizer", {}), "optimizer")
    own = parse_overrides(settings).get("optimizer", {})
    name = str(own.get("name", old.name)) if isinstance(own, dict) else old.name
    if name == old.name or name not in USUAL_RATES:
        return []
    added = [f"optimizer.lr={old.lr * USUAL_RATES[name] / USUAL_RATES[old.name]:.3g}"]
    if old.weight_decay and old.name in DECOUPLED_DECAY and name not in DECOUPLED_DECAY:
        added.append("optimizer.weight_decay=0")
    _log_recipe(f"optimizer.name={name} trains", added, settings, log)
    return added


def _log_recipe(beginning: str, added: Sequence[str], settings: Sequence[str], log: Log) -> None:
    """Log the added settings that the user did not set."""
    given = {setting.partition("=")[0] for setting in settings}
    if shown := [setting for setting in added if setting.partition("=")[0] not in given]:
        log(f"{beginning} with {' '.join(shown)}, unless you set others")
