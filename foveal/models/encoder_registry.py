"""Encoders by name: `model.encoder.kind`. A file of `models/encoders` registers those of one source."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from torch import nn

from foveal.config import EncoderConfig, validate_section
from foveal.config.values import StrictModel
from foveal.core.errors import UserError
from foveal.models.stack_settings import keys_below
from foveal.plugins.constructor_settings import NoSettings, settings_of_constructor
from foveal.plugins.registry import Registry, file_of, package_modules, section_name

S = TypeVar("S", bound=StrictModel)
Registered = TypeVar("Registered")


@dataclass(frozen=True)
class TokenSizes:
    """Texts of tokens."""

    vocabulary: int
    max_length: int


@dataclass(frozen=True)
class WordSizes:
    """Words, by the ids of their forms and of their characters."""

    forms: int
    form_counts: Sequence[int]
    characters: int
    max_length: int


@dataclass(frozen=True)
class SeriesSizes:
    """Measured series, or the frames of recordings."""

    channels: int
    max_length: int


@dataclass(frozen=True)
class ImageSizes:
    """Square images of `size` pixels."""

    channels: int
    size: int


@dataclass(frozen=True)
class ClipSizes:
    """Clips of square frames of `size` pixels."""

    channels: int
    size: int
    max_length: int


SourceSizes = TokenSizes | WordSizes | SeriesSizes | ImageSizes | ClipSizes
SOURCES: dict[str, type[SourceSizes]] = {
    "text": TokenSizes,
    "words": WordSizes,
    "series": SeriesSizes,
    "audio": SeriesSizes,
    "image": ImageSizes,
    "clip": ClipSizes,
}
"""What an encoder may read, and the sizes by which it is made."""


class EncoderComponent(NamedTuple):
    """A part of an encoder in words: a network, or a stack with its mixers, layers and width."""

    mixers: str
    layers: str = ""
    width: str = ""


class EncoderSpec(ABC, Generic[S]):
    """An encoder that a config may name: what it reads, its settings, and a function that makes it."""

    name: str
    """The name in `model.encoder.kind`."""
    reads: tuple[str, ...]
    """The sources that it reads, of `SOURCES`."""
    shared_settings: ClassVar[frozenset[str]] = frozenset()
    """The settings of the section `model.encoder` that it reads."""
    Settings: type[S]
    """The encoder's own section below `model.encoder`."""
    each_place: bool = True
    """The memory has a vector for each place of the source, so that each can have a label, or be read by a
    decoder."""

    def __init__(self, name: str):
        self.name = name

    @abstractmethod
    def make(self, config: EncoderConfig, settings: S, sizes: Any) -> nn.Module:
        """Return a new encoder for sources of some sizes.

        Raises: ConfigError: a setting does not fit.
        """

    def components(self, config: EncoderConfig) -> list[EncoderComponent]:
        """Return what the encoder is made of, from input to output."""
        return [EncoderComponent(config.mixers, str(config.layers), str(config.width))]


AnyEncoderSpec = EncoderSpec[Any]
CONTRACT = {"limit": None, "aux_names": ()}
"""Facts of encoders, and their values where a class does not state them."""


class ModuleEncoderSpec(EncoderSpec[Any]):
    """The spec of an encoder that is registered as a plain class.

    The constructor takes the sizes of its source. Its other arguments are the settings.
    """

    def __init__(self, name: str, module: Callable[..., nn.Module], reads: str, each_place: bool):
        super().__init__(name)
        self.module, self.reads, self.each_place = module, (reads,), each_place
        arguments = [field.name for field in fields(SOURCES[reads])]
        self.Settings = settings_of_constructor(module, arguments)

    def make(self, config: EncoderConfig, settings: Any, sizes: Any) -> nn.Module:
        """Return a new encoder.

        Raises: UserError: the class makes no encoder.
        """
        module = self.module(*asdict(sizes).values(), **dict(settings))
        for name, value in CONTRACT.items():
            if not hasattr(module, name):
                setattr(module, name, value)
        if not isinstance(getattr(module, "width", None), int):
            place = f"{file_of(self.module.__module__)}: {self.module.__name__}"
            raise UserError(
                f"{place}: an encoder has a `width`, that of the memory's vectors; set self.width"
            )
        return module

    def components(self, config: EncoderConfig) -> list[EncoderComponent]:
        return [EncoderComponent(self.name)]


def _encoder_spec(name: str, source: Any, reads: str = "", each_place: bool = True) -> AnyEncoderSpec:
    """Return the spec of a registered class: a spec, or an encoder.

    Raises: UserError: the class is an encoder, and nobody says what it reads.
    """
    if isinstance(source, type) and issubclass(source, EncoderSpec):
        spec: AnyEncoderSpec = source(name)
        return spec
    if reads not in SOURCES:
        raise UserError(
            f"{file_of(source.__module__)}: the encoder {name}: say what it reads, as in "
            f'@foveal.register_encoder("{name}", reads="text"); the sources are {", ".join(SOURCES)}'
        )
    return ModuleEncoderSpec(name, source, reads, each_place)


ENCODERS: Registry[AnyEncoderSpec] = Registry(
    "encoder",
    lambda: package_modules("foveal.models.encoders"),
    _encoder_spec,
    reserved=EncoderConfig.model_fields,
)


def register_encoder(
    name: str, *, reads: str = "", each_place: bool = True
) -> Callable[[Registered], Registered]:
    """Return a class decorator that lets configs name an encoder, as `model.encoder.kind`.

    The class is a module `memory, aux = encoder(source, lengths)` whose constructor takes the sizes of its
    source, and settings with defaults; or an `EncoderSpec`. `reads` is text (whose sizes are `vocabulary,
    max_length`), series or audio (`channels, max_length`), image (`channels, size`) or clip (`channels, size,
    max_length`). `each_place` says whether the memory has a vector for each token, step or frame.

    Raises: UserError: another encoder has this name, or the class makes no encoder.
    """

    return ENCODERS.decorator(name, partial(_encoder_spec, reads=reads, each_place=each_place))


def encoder_spec(config: EncoderConfig) -> AnyEncoderSpec:
    """Return the spec of the encoder that a config names.

    Raises: ConfigError: there is no such encoder.
    """
    return ENCODERS.find(config.kind, "model.encoder.kind")


def make_encoder(config: EncoderConfig, sizes: SourceSizes) -> nn.Module:
    """Return the encoder that a config names, for sources of some sizes.

    Raises: ConfigError: there is no such encoder, or a setting does not fit.
    """
    spec = encoder_spec(config)
    section = section_name(spec.name)
    table = config.part_tables.get(section, {}) if spec.Settings is not NoSettings else {}
    settings = validate_section(spec.Settings, table, f"model.encoder.{section}")
    return spec.make(config, settings, sizes)


def encoder_settings(config: EncoderConfig) -> set[str]:
    """Return the keys of the settings that an encoder reads, beside its own section.

    Raises: ConfigError: there is no such encoder.
    """
    shared = frozenset[str]() if config.kind == "none" else encoder_spec(config).shared_settings
    return keys_below("model.encoder", {"kind", *shared})


def reads_pixels(config: EncoderConfig) -> bool:
    """Return whether the encoder of a config reads the pixels of images or of frames."""
    return config.kind != "none" and bool({"image", "clip"} & {*encoder_spec(config).reads})


def plugin_encoders(source: str, each_place: bool) -> tuple[str, ...]:
    """Return the names of plugins' encoders that read a source, with a vector for each place if needed."""
    return tuple(
        name
        for name, spec in ENCODERS.items()
        if not ENCODERS.is_own(name) and source in spec.reads and (spec.each_place or not each_place)
    )
