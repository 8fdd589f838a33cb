"""Heads by name: `model.head.kind`, of tasks that predict labels."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

from torch import nn

from foveal.config.values import StrictModel
from foveal.core.errors import UserError
from foveal.plugins.constructor_settings import settings_of_constructor
from foveal.plugins.registry import Registry, file_of

Registered = TypeVar("Registered")
Target = Literal["label", "labels"]
CONTRACT = ("project", "projection")


@dataclass(frozen=True)
class HeadSpec:
    """A head that a config may name.

    The constructor takes the width of the memory's vectors and the number of classes. Its other arguments are
    the settings.
    """

    name: str
    module: Callable[..., nn.Module]
    Settings: type[StrictModel]
    target: Target
    """What it predicts: one label for a source, or labels of its places."""

    def make(self, width: int, classes: int, settings: Mapping[str, Any]) -> nn.Module:
        """Return a new head.

        Raises: UserError: the class makes no head.
        """
        head = self.module(width, classes, **settings)
        if lacking := [name for name in CONTRACT if not hasattr(head, name)]:
            place = f"{file_of(self.module.__module__)}: {self.module.__name__}"
            raise UserError(f"{place}: no head, since it lacks {', '.join(lacking)} (docs/plugins.md)")
        return head


def _head_spec(name: str, source: Any, target: Target = "label") -> HeadSpec:
    return HeadSpec(name, source, settings_of_constructor(source, ("width", "classes")), target)


HEADS: Registry[HeadSpec] = Registry("head", adapt=_head_spec, reserved={"kind"})


def register_head(name: str, *, target: Target = "label") -> Callable[[Registered], Registered]:
    """Return a class decorator that lets configs name a head, as `model.head.kind`.

    The constructor takes the width of the memory's vectors, the number of classes, and settings with
    defaults. The head of a single label is `features, aux = head(memory)`; that of a label for each place
    (`target="labels"`) is `features, aux = head(memory, positions)`. `head.project(features)` returns logits,
    and `head.projection` is the last layer.

    Raises: UserError: another head has this name.
    """
    return HEADS.decorator(name, partial(_head_spec, target=target))
