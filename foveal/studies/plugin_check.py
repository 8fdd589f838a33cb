"""The laws applied to the parts of a plugin: mixers, encoders, heads, networks and views."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

from foveal.config import EncoderConfig, suggest
from foveal.core.errors import UserError
from foveal.core.module_facts import HasInputBlock
from foveal.heads.registry import HEADS, HeadSpec
from foveal.inspection.registry import VIEWS
from foveal.laws import encoder_laws, head_laws, mixer_laws
from foveal.laws.law import LawBroken, randomize, reset_everything
from foveal.laws.module_states import example_memory
from foveal.laws.trial import T, Trial
from foveal.layers.data_dependent_init import DataDependentInit
from foveal.layers.mixers.recurrent import RecurrentCell
from foveal.layers.mixers.registry import MIXERS, AnyMixerSpec, MixerPlace, MixerSpec
from foveal.models.encoder_registry import ENCODERS, AnyEncoderSpec
from foveal.models.image_networks import image_encoder, published_input
from foveal.ops.jit.dispatch import reference_only
from foveal.plugins.loading import Plugin, line_in_plugin
from foveal.plugins.registry import registry_of
from foveal.studies.example_sources import ExampleSource, example_images, example_source
from foveal.studies.view_check import view_checks

WIDTH, OTHER_WIDTH, MEMORY_WIDTH, CLASSES = 8, 6, 5, 3
WEIGHTS = 0.7
"""The largest weight of a module under test: errors become visible."""
TOLERANCE = 1e-10
EVERY_CUT = range(1, T)


@dataclass(frozen=True)
class LawResult:
    """Whether a part keeps a law."""

    kind: str
    part: str
    law: str
    problem: str = ""
    """What is wrong; empty if the part keeps the law."""
    difference: float | None = None
    """The largest difference of two results that must agree, if that is what is wrong."""

    @property
    def holds(self) -> bool:
        return not self.problem


Law = tuple[str, Callable[[], object]]
"""The name of a law, and a function that checks it."""
CHECKS: dict[str, Callable[[str], Iterator[Law]]] = {
    "mixer": lambda name: mixer_checks(MIXERS[name]),
    "encoder": lambda name: encoder_checks(ENCODERS[name], EncoderConfig(kind=name)),
    "head": lambda name: head_checks(HEADS[name]),
    "model": lambda name: network_checks(name, *published_input(name)[:2]),
    "view": lambda name: view_checks(VIEWS[name]),
}
"""The laws of a part, by its kind and name."""


FIRST_ARGUMENTS = {("d_in", "width"): "mixer", ("width", "classes"): "head", ("channels",): "model"}
"""The kinds of parts that need no decorator, by the first arguments of their constructors."""


def named_parts(plugin: Plugin, name: str) -> dict[str, list[str]]:
    """Return the parts of a plugin that have a name, by kind, or the class of this name.

    A class that is not registered is registered under its own name.

    Raises: UserError: there is neither, or it can't be said what the class is.
    """
    named = {kind: [name] for kind, names in plugin.parts.items() if name in names}
    source = plugin.defined(name)
    if named or source is None:
        if not named:
            known = {*plugin.definitions, *(each for names in plugin.parts.values() for each in names)}
            raise UserError(f"{plugin.path}: defines no part {name}{suggest(name, known)}")
        return named
    registered = {kind: [own] for kind in plugin.parts if (own := registry_of(kind).name_of(source))}
    if registered:
        return registered
    kind = _kind_of(plugin, name, source)
    registry_of(kind).add(name, source)
    return {kind: [name]}


def law_results(parts: Mapping[str, list[str]]) -> Iterator[LawResult]:
    """Yield a result for each law of each part. `parts` has the names by kind."""
    for kind, names in parts.items():
        for name in names:
            if kind in CHECKS:
                yield from results_of_part(kind, name, CHECKS[kind](name))


def parts_without_laws(parts: Mapping[str, list[str]]) -> list[str]:
    """Return the kinds and names of the parts that no law is for."""
    return [f"{kind} {name}" for kind, names in parts.items() if kind not in CHECKS for name in names]


def results_of_part(kind: str, name: str, laws: Iterator[Law]) -> Iterator[LawResult]:
    """Yield the result of each law. If the part can't be made, that is the only result."""
    try:
        listed = [*laws]
    except Exception as error:  # whatever the code of a plugin raises
        yield LawResult(kind, name, "it can be made", _explain(error))
        return
    for law, check in listed:
        torch.manual_seed(0)
        try:
            with reference_only():
                check()
        except LawBroken as broken:
            yield LawResult(kind, name, law, broken.problem, broken.difference)
        except Exception as error:
            yield LawResult(kind, name, law, _explain(error))
        else:
            yield LawResult(kind, name, law)


def _kind_of(plugin: Plugin, name: str, source: Callable[..., object]) -> str:
    """Return the kind of part that a class is.

    Raises: UserError: it can't be said.
    """
    if isinstance(source, type) and issubclass(source, MixerSpec | RecurrentCell):
        return "mixer"
    arguments = tuple(inspect.signature(source).parameters)
    for first, kind in FIRST_ARGUMENTS.items():
        if arguments[: len(first)] == first and arguments[1:2] not in (("max_length",), ("size",)):
            return kind
    raise UserError(
        f"{plugin.path}: {name} is not registered, and its first arguments are not those of a mixer (d_in, "
        "width), a head (width, classes) or a network (channels): register it (docs/plugins.md)"
    )


def _explain(error: Exception) -> str:
    """Return an error in one line, with its line in the plugin if there is one."""
    if isinstance(error, UserError):
        return str(error)
    problem = " ".join(f"{type(error).__name__}: {error}".split())
    place = line_in_plugin(error)
    return f"{place}: {problem}" if place else problem


def mixer_checks(spec: AnyMixerSpec) -> Iterator[Law]:
    """Yield the laws of a mixer, which is made with its default settings."""
    width = WIDTH if spec.same_width else OTHER_WIDTH
    memory_width = MEMORY_WIDTH if spec.reads_memory else 0

    def make() -> nn.Module:
        torch.manual_seed(0)
        return spec.make(MixerPlace(spec.Settings(), WIDTH, width, memory_width=memory_width))

    def trial() -> Trial:
        module = make().double().eval()
        randomize(module, WEIGHTS)
        memory = example_memory(MEMORY_WIDTH, torch.float64) if memory_width else None
        # Attention multiplies a NaN in the future by zero, which is NaN.
        return Trial(module, WIDTH, torch.float64, TOLERANCE, standing_nan=False, memory=memory)

    trial()
    for name, law in (
        ("keeps nothing between calls", mixer_laws.keeps_nothing),
        ("pieces equal the whole", partial(mixer_laws.chunks, cuts=EVERY_CUT)),
        ("init_state is the start", mixer_laws.start_state_is_no_state),
        ("sees no future", _every_place_sees_no_future),
        ("padding and other rows change nothing", mixer_laws.padding_and_batch),
        ("rows can be selected and reset", mixer_laws.select_and_reset),
        ("states have their own storage", mixer_laws.storage),
        ("generation equals training", mixer_laws.one_by_one),
        ("every parameter learns", mixer_laws.every_parameter_learns),
    ):
        yield name, lambda law=law: law(trial())  # type: ignore[misc]
    yield "reset_parameters fills everything", lambda: _reset(make())


def _reset(module: nn.Module) -> None:
    reset_everything(module, module.named_parameters())


def _every_place_sees_no_future(trial: Trial) -> None:
    for t in EVERY_CUT:
        mixer_laws.causality(trial, t)


def encoder_checks(spec: AnyEncoderSpec, config: EncoderConfig) -> Iterator[Law]:
    """Yield the laws of an encoder, made with its default settings, for each source that it reads."""
    for reads in spec.reads:
        example = example_source(reads)

        def make(example: ExampleSource = example) -> nn.Module:
            torch.manual_seed(0)
            return spec.make(config, spec.Settings(), example.sizes)

        def made(make: Callable[[], nn.Module] = make) -> nn.Module:
            module = make().double().eval()
            randomize(module, WEIGHTS)
            return module

        yield from _memory_checks(made, example, spec.each_place and reads in ("text", "words", "series"))
        yield "reset_parameters fills everything", lambda make=make: _reset(make())  # type: ignore[misc]


def _fit(encoder: nn.Module, example: ExampleSource) -> nn.Module:
    """Return an encoder, whose weights from training data, if there are any, are those of the example."""
    first = encoder.input_block() if isinstance(encoder, HasInputBlock) else encoder
    if isinstance(first, DataDependentInit):
        torch.manual_seed(0)
        first.fit(example.values, *([] if example.lengths is None else [torch.tensor(example.lengths)]))
    return encoder


def _memory_checks(made: Callable[[], nn.Module], example: ExampleSource, each_place: bool) -> Iterator[Law]:
    _, source, lengths = example

    def fitted() -> nn.Module:
        return _fit(made(), example)

    fitted()
    yield (
        "makes a memory",
        lambda: encoder_laws.shape(fitted(), source, lengths, lengths if each_place else None),
    )
    yield "keeps nothing between calls", lambda: encoder_laws.keeps_nothing(fitted(), source, lengths)
    if lengths is not None:
        yield "padding changes nothing", lambda: encoder_laws.padding(fitted(), source, lengths)
    yield "other rows change nothing", lambda: encoder_laws.batch(fitted(), source, lengths)
    yield "every parameter learns", lambda: encoder_laws.every_parameter_learns(fitted(), source, lengths)


def head_checks(spec: HeadSpec) -> Iterator[Law]:
    """Yield the laws of a head, which is made with its default settings."""
    each_place = spec.target == "labels"

    def make() -> nn.Module:
        torch.manual_seed(0)
        return spec.make(WIDTH, CLASSES, dict(spec.Settings()))

    def made() -> tuple[nn.Module, head_laws.Run]:
        head = make().double().eval()
        randomize(head, WEIGHTS)
        return head, head_laws.runner(head, each_place)

    made()
    yield "gives logits", lambda: head_laws.shape(made()[1], WIDTH, CLASSES, each_place)
    yield "keeps nothing between calls", lambda: head_laws.keeps_nothing(*made(), WIDTH)
    yield "padding changes nothing", lambda: head_laws.padding(made()[1], WIDTH, each_place)
    yield "other rows change nothing", lambda: head_laws.batch(made()[1], WIDTH, each_place)
    yield "every parameter learns", lambda: head_laws.every_parameter_learns(*made(), WIDTH)
    yield "reset_parameters fills everything", lambda: _reset(make())


def network_checks(name: str, channels: int, size: int) -> Iterator[Law]:
    """Yield the laws of a network for images, which is made with its default settings."""

    def made() -> nn.Module:
        torch.manual_seed(0)
        return image_encoder(name, channels, "published", size=size).double().eval()

    yield from _memory_checks(made, example_images(channels, size), False)
