"""Networks for images by name, as in `--model resnet-18`: ours (`image_networks.py`), and plugins'."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch
from torch import nn

from foveal.config import ConfigError, EncoderConfig
from foveal.config.values import StrictModel
from foveal.core.errors import UserError
from foveal.encoders.image import ImageEncoder
from foveal.heads.classification import ClassificationHead
from foveal.plugins.constructor_settings import settings_of_constructor
from foveal.plugins.registry import Registry, file_of, section_name

Registered = TypeVar("Registered")


class MapEncoder(ImageEncoder):
    """An encoder of images that is any module from images to a map of features."""

    def __init__(self, module: nn.Module, channels: int, width: int):
        super().__init__([module], width)
        self.channels = channels

    def grid(self, size: int) -> tuple[int, int]:
        """Return the number of rows and columns of the map for images of `size` by `size` pixels.

        The module itself is tried, since its layers are not known. The numbers are 0 for images that it can't
        read.
        """
        device = next((weight.device for weight in self.parameters()), torch.device("cpu"))
        image, was_training = torch.zeros(1, self.channels, size, size, device=device), self.training
        self.eval()
        try:
            with torch.no_grad():
                rows, columns = self.blocks[0](image).shape[2:]
        except RuntimeError:
            return 0, 0
        finally:
            self.train(was_training)
        return rows, columns


@dataclass(frozen=True)
class ModuleNetwork:
    """A network that is registered as a plain class: a module from images to a map of `width` channels.

    The constructor takes the number of channels of the images. Its other arguments are the settings.
    """

    name: str
    module: Callable[..., nn.Module]
    Settings: type[StrictModel]
    size: int
    classes: int
    channels: int
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """The file and the class, for messages."""
        return f"{file_of(self.module.__module__)}: {self.module.__name__}"

    def make_encoder(self, channels: int, small: bool) -> MapEncoder:
        """Return a new encoder.

        Raises: ConfigError: a small stem is wanted. UserError: the class makes no network.
        """
        if small:
            raise ConfigError(f"model.encoder.stem=small: {self.name} has one stem; leave it as published")
        module = self.module(channels, **self.settings)
        width = getattr(module, "width", None)
        if not isinstance(width, int):
            raise UserError(f"{self.place}: a network has a `width`, the channels of its map; set self.width")
        return MapEncoder(module, channels, width)

    def make_head(self, width: int, grid: tuple[int, int], classes: int, dropout: float) -> nn.Module:
        """Return a new classifier of the mean over the map."""
        return ClassificationHead(width, classes, "mean", dropout)


def _network(name: str, source: Any, size: int = 224, channels: int = 3, classes: int = 1000) -> Any:
    """Return the definition of a network, for a class that is no definition itself."""
    if not isinstance(source, type) and hasattr(source, "make_encoder"):
        return source
    return ModuleNetwork(name, source, settings_of_constructor(source, ["channels"]), size, classes, channels)


NETWORKS: Registry[Any] = Registry(
    "model",
    lambda: ["foveal.models.image_networks"],
    _network,
    reserved=EncoderConfig.model_fields,
)


def register_model(
    name: str, *, size: int = 224, channels: int = 3, classes: int = 1000
) -> Callable[[Registered], Registered]:
    """Return a decorator that registers a network for images, for `--model NAME`.

    The class is a module from images (B, channels, H, W) to a map (B, width, h, w), whose constructor takes
    the number of channels, and settings with defaults. `size`, `channels` and `classes` are those of the
    images that it is meant for, which `foveal train` and `foveal.create_model` begin with.

    Raises: UserError: another network has this name.
    """
    return NETWORKS.decorator(name, lambda name, source: _network(name, source, size, channels, classes))


def network_settings(config: EncoderConfig) -> dict[str, Any]:
    """Return the settings of a network's own section in a config; none for a network without settings."""
    return config.part_tables.get(section_name(config.network), {})


def with_settings(definition: Any, settings: Mapping[str, Any]) -> Any:
    """Return the definition of a network with the settings of its own section."""
    return replace(definition, settings=settings) if isinstance(definition, ModuleNetwork) else definition
