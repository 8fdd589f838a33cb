"""The list of trials, from presets, registries and the classes of the config: nothing is listed by hand."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import islice
from typing import Any, Literal, NamedTuple, get_args, get_origin

from foveal.config import Config, ConfigError, OptimizerConfig
from foveal.config.sections_by_path import UnreadReason, meanings, setting_text
from foveal.config.values import StrictModel
from foveal.layers.mixers.registry import mixer_specs
from foveal.models.network_registry import NETWORKS
from foveal.models.series_networks import SERIES_NETWORKS
from foveal.tasks.config import load_config
from foveal.tasks.read_settings import config_sections, unread_settings
from foveal.tasks.registry import all_tasks, network_task, task_of
from tests.support.trained_presets import trained_presets

STEPS = 20
SMALL = {"data.batch_tokens": 512, "data.image.batch_size": 32}
"""The sizes of batches at most, where they are read."""
BY_THE_SCRIPT = ("task.name", "training.budget")
"""Settings that the script sets itself."""
NAMES: dict[str, Iterable[str]] = {"mixers": mixer_specs(), "network": SERIES_NETWORKS}
"""The registries of the settings that name a part. Networks of images have trials of their own."""
COMBINED = ("network_activation", "network_norm", "initialization")
"""The settings that users combine on a network, beside the optimizer's name."""


@dataclass(frozen=True)
class Trial:
    """A training: a preset with settings in place of its own."""

    name: str
    preset: str
    settings: tuple[str, ...] = ()
    default: str = ""
    """The name of the trial to compare with; empty for none."""

    def arguments(self, steps: int = STEPS) -> list[str]:
        """Return the options of `foveal train` with small batches, in few steps, evaluated once."""
        own = {setting.partition("=")[0] for setting in self.settings}
        added = [*base(self.preset).small, f"training.evaluate_every={steps}"]
        added += ["training.final_test=false"] if self.default else []
        budget = [] if base(self.preset).closed_form else ["--budget", f"{steps}steps"]
        kept = [setting for setting in added if setting.partition("=")[0] not in own]
        return ["--model", self.preset, *self.settings, *kept, *budget]


class Field(NamedTuple):
    """A setting in a section of a config."""

    section: StrictModel
    name: str


@dataclass(frozen=True)
class Base:
    """A preset with settings, whose own settings are varied."""

    preset: str
    settings: tuple[str, ...] = ()
    config: Config = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "config", load_config(self.preset, self.settings))

    @property
    def task(self) -> str:
        return task_of(self.config).name

    @property
    def closed_form(self) -> bool:
        """Whether nothing is trained by gradients."""
        return self.config.training.budget == "0steps"

    @cached_property
    def fields(self) -> dict[str, Field]:
        """All settings by their dotted keys."""
        return {
            f"{path}.{name}": Field(section, name)
            for path, section in config_sections(self.config).items()
            for name in type(section).model_fields
            if not isinstance(getattr(section, name), StrictModel)
        }

    @cached_property
    def unread(self) -> dict[str, UnreadReason]:
        return unread_settings(self.config)

    @property
    def small(self) -> list[str]:
        """The settings that make batches small."""
        fields, unread = self.fields, self.unread
        sizes = {key: getattr(*fields[key]) for key in SMALL if key in fields and key not in unread}
        return [f"{key}={min(size, SMALL[key])}" for key, size in sizes.items()]


@cache
def base(preset: str) -> Base:
    """Return a preset as it is."""
    return Base(preset)


@cache
def trials() -> list[Trial]:
    """Return every preset, every network, and every choice of every setting."""
    presets = [Trial(f"preset {name}", name) for name in trained_presets()]
    return [*presets, *map(_network, NETWORKS), *_setting_trials()]


def combinations() -> list[Trial]:
    """Return what users combine: tasks with optimizers, networks with optimizers and pairs of settings."""
    own = [base(task.preset) for task in all_tasks().values()]
    found = [_trial(one, f"optimizer.name={name}") for one in own for name in _optimizers(one)]
    fields = base(network_task().preset).fields
    keys = {key.rpartition(".")[2]: key for key in fields}
    options = {name: [f"{keys[name]}={value}" for value in choices(fields[keys[name]])] for name in COMBINED}
    activations, norms, rules = options.values()
    optimizers = [
        f"optimizer.name={name}" for name in get_args(OptimizerConfig.model_fields["name"].annotation)
    ]
    sets: list[tuple[str, ...]] = [(one,) for one in [*optimizers, *activations, *norms, *rules]]
    sets += [(one, other) for one in activations for other in rules]
    for network in map(_network, NETWORKS):
        found += [
            Trial(
                f"{' '.join(more)} ({network.name})", network.preset, (*network.settings, *more), network.name
            )
            for more in sets
        ]
    return found


def _network(name: str) -> Trial:
    return Trial(f"network {name}", network_task().preset, (f"model.encoder.network={name}",))


def _optimizers(one: Base) -> list[str]:
    return [] if one.closed_form else choices(Field(one.config.optimizer, "name"))


def untried_settings() -> list[str]:
    """Return the keys of settings that no trial varies: free text, such as the name of a column."""
    tried = {setting.partition("=")[0] for trial in trials() for setting in trial.settings}
    every = {key for one in bases() for key in one.fields}
    return sorted(every - tried - {*BY_THE_SCRIPT})


@cache
def bases() -> tuple[Base, ...]:
    """Return all presets, and those of tasks with each encoder that fits, and with each mixer."""
    presets = [base(name) for name in trained_presets()]
    own = [base(task.preset) for task in all_tasks().values()]
    kinds = [
        Trial("", one.preset, (f"model.encoder.kind={kind}",))
        for one in own
        for kind in type(task_of(one.config)).encoders
        if kind != one.config.model.encoder.kind
    ]
    mixers = [
        Trial("", one.preset, (f"{key}={name}",))
        for one in own
        for key, each in one.fields.items()
        if each.name == "mixers" and key not in one.unread
        for name, spec in mixer_specs().items()
        if not spec.reads_memory
    ]
    fitting = [made for trial in [*kinds, *mixers] if (made := _fitting(trial)) is not None]
    return tuple(sorted([*presets, *fitting], key=_preference))


def _preference(one: Base) -> tuple[bool, bool, bool, int, str]:
    """Return what bases are sorted by: first come the presets of tasks that train, and that read little."""
    is_own = one.preset == type(task_of(one.config)).preset
    return (
        one.closed_form,
        one.settings != (),
        not is_own,
        len(one.fields.keys() - one.unread.keys()),
        one.preset,
    )


def _fitting(trial: Trial) -> Base | None:
    try:
        return Base(trial.preset, trial.settings)
    except ConfigError:
        return None


def _setting_trials() -> Iterator[Trial]:
    """Yield a trial for each choice of each setting, on the first preset that reads the setting."""
    readers: dict[str, tuple[Base, tuple[str, ...]]] = {}
    kinds: list[Base] = []
    for one in bases():
        unread = one.unread
        for key in one.fields.keys() - unread.keys() - {*BY_THE_SCRIPT}:
            readers.setdefault(key, (one, ()))
        kinds += [one] if any("encoder.kind" in setting for setting in one.settings) else []
    for one in bases():
        for key, reason in one.unread.items():
            if key not in readers and (needed := _make_read(one, reason)):
                readers[key] = one, needed
    for one in kinds:
        yield _trial(one, one.settings[0])
    for key, (one, needed) in sorted(readers.items()):
        if key != "model.encoder.kind":
            varied = Base(one.preset, (*one.settings, *needed))
            yield from (_trial(varied, f"{key}={value}") for value in _values(varied, key))


def _trial(one: Base, setting: str) -> Trial:
    settings = tuple(dict.fromkeys((*one.settings, setting)))
    return Trial(f"{' '.join(settings)} ({one.preset})", one.preset, settings, f"preset {one.preset}")


def _make_read(one: Base, reason: UnreadReason) -> tuple[str, ...]:
    """Return the setting that makes another setting read; none if there is no such setting."""
    if reason.values_to_set is None or reason.key in one.unread:
        return ()
    values = reason.values_to_set or tuple(choices(one.fields[reason.key]))
    for value in values:
        if _fitting(Trial("", one.preset, (*one.settings, f"{reason.key}={setting_text(value)}"))):
            return (f"{reason.key}={setting_text(value)}",)
    return ()


def _values(one: Base, key: str) -> list[str]:
    """Return the values to try of a setting: all choices, or the first other number that fits."""
    each = one.fields[key]
    found = choices(each)
    if isinstance(getattr(*each), bool) or not isinstance(getattr(*each), int | float):
        return found
    fits = (value for value in found if _fitting(Trial("", one.preset, (*one.settings, f"{key}={value}"))))
    return [*islice(fits, 1)]


def choices(each: Field) -> list[str]:
    """Return the other values of a setting: of its type or registry, words of its meaning, or numbers.

    An integer is halved first, so that the trial is short.
    """
    value, annotation = getattr(*each), type(each.section).model_fields[each.name].annotation
    values: list[Any]
    if get_origin(annotation) is Literal:
        values = [*get_args(annotation)]
    elif isinstance(value, bool):
        values = [not value]
    elif isinstance(value, int):
        values = [value // 2, 2 * value, value + 1, 4, 1] if value > 1 else [value + 1, 4, 0]
    elif isinstance(value, float):
        values = [value / 2, 2 * value] if value else [0.1, 1.0]
    else:
        values = [*NAMES.get(each.name, ())] or _words(each)
    texts = [setting_text(one) for one in values if one != value]
    return [*dict.fromkeys(texts)]


def _words(each: Field) -> list[str]:
    """Return the examples in the meaning of a free text that the setting accepts, as `such as 1 or 2` has."""
    meaning = meanings(type(each.section)).get(each.name, "")
    _, colon, listed = meaning.partition(": ")
    _, such, examples = meaning.partition("such as ")
    words = re.split(r",? or a [a-z ]+|, | or |such as ", (listed if colon else examples).rstrip("."))
    accepted = []
    for word in filter(None, map(str.strip, words)):
        table = each.section.model_dump() | {each.name: word}
        try:
            type(each.section).model_validate(table)
        except ValueError:
            continue
        accepted += [word] if " " not in word else []
    return accepted if colon or such else []
