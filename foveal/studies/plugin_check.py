"""The laws applied to the parts of a plugin: mixers, encoders, heads and networks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from foveal.config import EncoderConfig
from foveal.core.errors import UserError
from foveal.heads.registry import HeadSpec
from foveal.laws import encoder_laws, head_laws, mixer_laws
from foveal.laws.law import LawBroken, randomize, reset_everything
from foveal.laws.module_states import example_memory
from foveal.laws.trial import T, Trial
from foveal.layers.mixers.registry import AnyMixerSpec, MixerPlace
from foveal.models.encoder_registry import (
    SOURCES,
    AnyEncoderSpec,
    ClipSizes,
    ImageSizes,
    SeriesSizes,
    TokenSizes,
)
from foveal.ops.jit.dispatch import reference_only
from foveal.plugins.loading import Plugin, line_in_plugin
from foveal.plugins.registry import registry_of

WIDTH, OTHER_WIDTH, MEMORY_WIDTH, CLASSES = 8, 6, 5, 3
WEIGHTS = 0.7
"""The largest weight of a module under test: errors become visible."""
TOLERANCE = 1e-10
LENGTHS = [9, 4, 1, 7]
VOCABULARY, CHANNELS, SIDE = 11, 3, 32
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


def law_results(plugin: Plugin) -> Iterator[LawResult]:
    """Yield a result for each law of each part of a plugin."""
    makers: dict[str, Callable[[Any], Iterator[Law]]] = {
        "mixer": mixer_checks,
        "encoder": encoder_checks,
        "head": head_checks,
        "model": network_checks,
    }
    for kind, names in plugin.parts.items():
        for name in names:
            if kind in makers:
                yield from _results(kind, name, makers[kind](registry_of(kind)[name]))


def parts_without_laws(plugin: Plugin) -> list[str]:
    """Return the kinds and names of a plugin's parts that no law is for."""
    checked = ("mixer", "encoder", "head", "model")
    return [f"{kind} {name}" for kind, names in plugin.parts.items() if kind not in checked for name in names]


def _results(kind: str, name: str, laws: Iterator[Law]) -> Iterator[LawResult]:
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
        return Trial(module, WIDTH, torch.float64, TOLERANCE, memory=memory)

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
    yield "reset_parameters fills everything", lambda: reset_everything(make())


def _every_place_sees_no_future(trial: Trial) -> None:
    for t in EVERY_CUT:
        mixer_laws.causality(trial, t)


def encoder_checks(spec: AnyEncoderSpec) -> Iterator[Law]:
    """Yield the laws of an encoder, made with its default settings, for each source that it reads."""
    for reads in spec.reads:
        sizes, source, lengths = example_source(reads)

        def make(sizes: Any = sizes) -> nn.Module:
            torch.manual_seed(0)
            return spec.make(EncoderConfig(kind=spec.name), spec.Settings(), sizes)

        def made(make: Callable[[], nn.Module] = make) -> nn.Module:
            module = make().double().eval()
            randomize(module, WEIGHTS)
            return module

        yield from _memory_checks(made, source, lengths, spec.each_place and reads in ("text", "series"))
        yield "reset_parameters fills everything", lambda make=make: reset_everything(make())  # type: ignore[misc]


def _memory_checks(
    made: Callable[[], nn.Module], source: Tensor, lengths: list[int] | None, each_place: bool
) -> Iterator[Law]:
    sizes = lengths if each_place else None
    made()
    yield "makes a memory", lambda: encoder_laws.shape(made(), source, lengths, sizes)
    if lengths is not None:
        yield "padding changes nothing", lambda: encoder_laws.padding(made(), source, lengths)
    yield "other rows change nothing", lambda: encoder_laws.batch(made(), source, lengths)
    yield "every parameter learns", lambda: encoder_laws.every_parameter_learns(made(), source, lengths)


def example_source(reads: str) -> tuple[Any, Tensor, list[int] | None]:
    """Return the sizes of a source, a batch of it in float64, and its lengths; images have none."""
    generator = torch.Generator().manual_seed(0)
    rows, longest = len(LENGTHS), max(LENGTHS)
    if reads == "text":
        tokens = torch.randint(1, VOCABULARY, (rows, longest), generator=generator)
        return TokenSizes(VOCABULARY, longest), tokens, LENGTHS
    shapes = {
        "image": (rows, CHANNELS, SIDE, SIDE),
        "clip": (rows, longest, CHANNELS, SIDE, SIDE),
    }
    shape = shapes.get(reads, (rows, longest, CHANNELS))
    numbers = torch.randn(shape, dtype=torch.float64, generator=generator)
    sizes = {
        ImageSizes: ImageSizes(CHANNELS, SIDE),
        ClipSizes: ClipSizes(CHANNELS, SIDE, longest),
        SeriesSizes: SeriesSizes(CHANNELS, longest),
    }
    return sizes[SOURCES[reads]], numbers, None if reads == "image" else LENGTHS


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
    yield "padding changes nothing", lambda: head_laws.padding(made()[1], WIDTH, each_place)
    yield "other rows change nothing", lambda: head_laws.batch(made()[1], WIDTH, each_place)
    yield "every parameter learns", lambda: head_laws.every_parameter_learns(*made(), WIDTH)
    yield "reset_parameters fills everything", lambda: reset_everything(make())


def network_checks(definition: Any) -> Iterator[Law]:
    """Yield the laws of a network for images, which is made with its default settings."""
    _, source, _ = example_source("image")

    def made() -> nn.Module:
        torch.manual_seed(0)
        encoder: nn.Module = definition.make_encoder(CHANNELS, False).double().eval()
        return encoder

    yield from _memory_checks(made, source, None, False)
