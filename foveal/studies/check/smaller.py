"""A config whose model is checked in seconds: large models are made smaller, and long windows short."""

from collections.abc import Iterator
from typing import NamedTuple

from foveal.config import Config, StackConfig, parse_overrides
from foveal.core.shapes_only import shapes_only
from foveal.models.mixer_settings import stack_mixers
from foveal.tasks.config import from_tables
from foveal.tasks.registry import task_of

MAX_PARAMETERS = 12_000_000
"""Parameters above which a model is made smaller."""
LAYERS, WIDTH, HEADS, EXPERTS, VOCABULARY = 2, 64, 8, 4, 2048
"""The sizes of a model that is made smaller."""
MAX_WINDOW, WINDOW = 8, 3
"""The longest window that the texts under check fill, and that in place of a longer one."""


class SmallerConfig(NamedTuple):
    """The config of a model under check."""

    config: Config
    changes: tuple[str, ...]
    """What is smaller than in the config that was given, in words."""


class Change(NamedTuple):
    """A setting that is made smaller."""

    key: str
    old: int
    new: int


def smaller_config(config: Config) -> SmallerConfig:
    """Return a config whose model is checked in seconds.

    Raises: ConfigError: a model of these settings can't be made.
    """
    with shapes_only():
        count = sum(weight.numel() for weight in task_of(config).example_model().parameters())
    changes = [*_changes(config, count > MAX_PARAMETERS)]
    if changes:
        overrides = [f"{change.key}={change.new}" for change in changes]
        config = from_tables(config.model_dump(), parse_overrides(overrides))
    return SmallerConfig(config, tuple(f"{key}={new} (of {old:,})" for key, old, new in changes))


def unreached_windows(config: Config) -> list[str]:
    """Return notes on windows of attention that are longer than the texts under check."""
    windows = _changes(config, False)
    return [f"{key}={old}: its edge is not reached by the texts under check" for key, old, _ in windows]


def _changes(config: Config, is_large: bool) -> Iterator[Change]:
    stacks: dict[str, StackConfig] = {"model": config.model}
    if config.model.encoder.kind != "none":
        stacks["model.encoder"] = config.model.encoder
    read = task_of(config).settings_read()
    for section, stack in stacks.items():
        if f"{section}.mixers" not in read:
            continue
        for spec, settings in stack_mixers(stack, section).values():
            limits = {"window": (MAX_WINDOW, WINDOW)} | ({"heads": (HEADS, HEADS)} if is_large else {})
            for name, (limit, new) in limits.items():
                if getattr(settings, name, 0) > limit:
                    yield Change(f"{section}.{spec.section}.{name}", getattr(settings, name), new)
        if is_large:
            yield from _smaller_stack(section, stack)
    if is_large and config.data.vocab_size > VOCABULARY and "data.vocab_size" in read:
        yield Change("data.vocab_size", config.data.vocab_size, VOCABULARY)


def _smaller_stack(section: str, stack: StackConfig) -> Iterator[Change]:
    layers = max(LAYERS, len(stack.pattern))
    for name, old, new in (
        ("layers", stack.layers, layers),
        ("width", stack.width, WIDTH),
        ("embedding_width", stack.embedding_width, WIDTH),
    ):
        if old > new:
            yield Change(f"{section}.{name}", old, new)
    if stack.feedforward == "moe" and stack.experts.count > EXPERTS:
        yield Change(f"{section}.experts.count", stack.experts.count, EXPERTS)
