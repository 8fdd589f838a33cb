"""The laws applied to the parts of a plugin: mixers, encoders, heads, networks and views."""

import inspect
from collections.abc import Callable, Iterator, Mapping

import torch
from torch import nn

from foveal.config import EncoderConfig, suggest
from foveal.core.errors import UserError
from foveal.heads.registry import HEADS, HeadSpec
from foveal.inspection.registry import VIEWS
from foveal.laws.law import randomize
from foveal.laws.module_states import example_memory
from foveal.laws.trial import Trial
from foveal.layers.mixers.recurrent import RecurrentCell
from foveal.layers.mixers.registry import MIXERS, AnyMixerSpec, MixerPlace, MixerSpec
from foveal.models.encoder_registry import ENCODERS, AnyEncoderSpec, ImageSizes
from foveal.models.image_networks import image_encoder, published_input
from foveal.plugins.loading import Plugin
from foveal.plugins.registry import registry_of
from foveal.studies.check.example_sources import ExampleSource, example_source, source_of_sizes
from foveal.studies.check.law import Law, LawResult, check_laws
from foveal.studies.check.part_laws import law_of_reset, laws_of_encoder, laws_of_head, laws_of_mixer
from foveal.studies.check.view import view_laws

WIDTH, OTHER_WIDTH, MEMORY_WIDTH, CLASSES = 8, 6, 5, 3
WEIGHTS = 0.7
"""The largest weight of a module under test: errors become visible."""
TOLERANCE = 1e-10
LAWS: dict[str, Callable[[str], Iterator[Law]]] = {
    "mixer": lambda name: mixer_laws(MIXERS[name]),
    "encoder": lambda name: encoder_laws(ENCODERS[name], EncoderConfig(kind=name)),
    "head": lambda name: head_laws(HEADS[name]),
    "model": lambda name: network_laws(name, *published_input(name)[:2]),
    "view": lambda name: view_laws(VIEWS[name]),
}
"""The laws of a part, by its kind and name."""


FIRST_ARGUMENTS = {("d_in", "width"): "mixer", ("width", "classes"): "head", ("channels",): "model"}
"""The kinds of parts that need no decorator, by the first arguments of their constructors."""


def named_parts(plugin: Plugin, name: str) -> dict[str, list[str]]:
    """Return the parts of a plugin that have a name, by kind, or the class of this name.

    A class that is not registered is registered under its own name. It is one that has a kind.

    Raises: UserError: there is neither.
    """
    named = {kind: [name] for kind, names in plugin.parts.items() if name in names}
    source = plugin.defined(name)
    if named or source is None:
        if not named:
            known = {*plugin.definitions, *(each for names in plugin.parts.values() for each in names)}
            raise UserError(f"{plugin.path}: defines no part {name}{suggest(name, known)}")
        return named
    kind = kind_of(plugin, source)
    if registered := registry_of(kind).name_of(source):
        return {kind: [registered]}
    registry_of(kind).add(name, source)
    return {kind: [name]}


def check_parts(parts: Mapping[str, list[str]]) -> Iterator[LawResult]:
    """Yield a result for each law of each part. `parts` has the names by kind."""
    for kind, names in parts.items():
        for name in names:
            if kind in LAWS:
                yield from check_laws(f"{kind} {name}", lambda kind=kind, name=name: LAWS[kind](name))  # type: ignore[misc]
            else:
                yield LawResult(f"{kind} {name}", "its laws", "not applicable", f"there are none of a {kind}")


def kind_of(plugin: Plugin, source: Callable[..., object]) -> str:
    """Return the kind of part that a class is, registered or not; empty if it is none."""
    if registered := [kind for kind in plugin.parts if registry_of(kind).name_of(source)]:
        return registered[0]
    if isinstance(source, type) and issubclass(source, MixerSpec | RecurrentCell):
        return "mixer"
    arguments = tuple(inspect.signature(source).parameters)
    for first, kind in FIRST_ARGUMENTS.items():
        if arguments[: len(first)] == first and arguments[1:2] not in (("max_length",), ("size",)):
            return kind
    return ""


def mixer_laws(spec: AnyMixerSpec) -> Iterator[Law]:
    """Yield the laws of a mixer, which is made with its default settings."""
    width = WIDTH if spec.same_width else OTHER_WIDTH
    memory_width = MEMORY_WIDTH if spec.reads_memory else 0

    def make() -> nn.Module:
        torch.manual_seed(0)
        return spec.make(MixerPlace(spec.Settings(), WIDTH, width, memory_width=memory_width))

    def trial() -> Trial:
        memory = example_memory(MEMORY_WIDTH, torch.float64) if memory_width else None
        # Attention multiplies a NaN in the future by zero, which is NaN.
        return Trial(visible(make()), WIDTH, torch.float64, TOLERANCE, standing_nan=False, memory=memory)

    yield from laws_of_mixer(trial)
    yield law_of_reset(make)


def visible(module: nn.Module) -> nn.Module:
    """Return a module in float64 and in evaluation mode, with large weights, so that errors are visible."""
    module = module.double().eval()
    randomize(module, WEIGHTS)
    return module


def encoder_laws(spec: AnyEncoderSpec, config: EncoderConfig) -> Iterator[Law]:
    """Yield the laws of an encoder, made with its default settings, for each source that it reads."""
    for reads in spec.reads:
        example = example_source(reads)

        def make(example: ExampleSource = example) -> nn.Module:
            torch.manual_seed(0)
            return spec.make(config, spec.Settings(), example.sizes)

        each_place = spec.each_place and reads in ("text", "words", "series")
        yield from laws_of_encoder(lambda make=make: visible(make()), example, each_place)  # type: ignore[misc]
        yield law_of_reset(make)


def head_laws(spec: HeadSpec) -> Iterator[Law]:
    """Yield the laws of a head, which is made with its default settings."""

    def make() -> nn.Module:
        torch.manual_seed(0)
        return spec.make(WIDTH, CLASSES, dict(spec.Settings()))

    yield from laws_of_head(lambda: visible(make()), WIDTH, CLASSES, spec.target == "labels")
    yield law_of_reset(make)


def network_laws(name: str, channels: int, size: int) -> Iterator[Law]:
    """Yield the laws of a network for images, which is made with its default settings."""

    def made() -> nn.Module:
        torch.manual_seed(0)
        return image_encoder(name, channels, "published", size=size).double().eval()

    yield from laws_of_encoder(made, source_of_sizes(ImageSizes(channels, size)), False)
