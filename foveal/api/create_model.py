"""Models alone: a module of PyTorch by the name of a preset or of a published network."""

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from operator import index
from typing import Any, SupportsIndex

import numpy as np
import torch
from torch import nn

from foveal.api.errors import plain_errors
from foveal.api.training.options import setting
from foveal.config import (
    Config,
    parse_config,
    parse_overrides,
    preset_names,
    read_preset,
    suggest,
)
from foveal.config.old_names import flatten
from foveal.core.errors import UserError
from foveal.core.module_facts import auxiliary_models
from foveal.core.runtime import resolve_device
from foveal.data.pairs.labels import LabelTarget
from foveal.data.pairs.pair import PairProcessor
from foveal.heads.decoder_lm import DecoderLM
from foveal.interop.published.catalog import SHORT_NAMES
from foveal.models.decoder import LanguageModel
from foveal.models.encoder import EncoderWithHead
from foveal.models.image_networks import published_input
from foveal.models.network_registry import NETWORKS
from foveal.tasks.base import Task
from foveal.tasks.config import from_tables, load_config
from foveal.tasks.configure import network_config
from foveal.tasks.encoder_settings import encoder_tables
from foveal.tasks.published_run import is_published, published_run
from foveal.tasks.registry import labeling_task, open_task, task_of
from foveal.tasks.session import build_model
from foveal.tasks.warm_start import load_encoder, load_run_weights
from foveal.ui.console import log

SIZES = {
    "classes": "the number of classes",
    "vocabulary": "the number of tokens",
    "channels": "the numbers of each step of a series",
}
"""The sizes that a model without data may need, in words."""


@plain_errors
def create_model(
    name: str,
    *,
    classes: SupportsIndex | None = None,
    vocabulary: SupportsIndex | None = None,
    channels: SupportsIndex | None = None,
    size: SupportsIndex | None = None,
    pretrained: bool = False,
    seed: int = 0,
    device: str = "cpu",
    settings: Mapping[str, Any] | None = None,
) -> nn.Module:
    """Return the model called `name` as a module whose `forward` returns logits.

    `name` is a preset (`foveal models`), a published image network such as resnet-18, or a TOML file of
    settings. The initial weights are those of a run with the same `seed`; the global random generators are
    left as they are. The module is in training mode. What it reads, and the logits:

    * images (B, C, H, W), standardized: logits (B, classes);
    * tokens (B, T): logits of the next token (B, T, vocabulary) of a language model, or of classes;
    * series (B, T, C): logits (B, classes), or (B, T, classes) of a model that labels steps;
    * a source, and tokens (B, T) that a decoder reads: `model(source, lengths, tokens)`.

    `lengths` (B,) is the second argument for rows with padding. Texts that have an encoder get three special
    tokens, numbered after those of `vocabulary`.

    `classes` may be left out for an image network, which then has those that it was published for.
    `channels` and `size` (the side in pixels) are those of images, or `channels` those of series.
    `settings` are all others, such as `{"model.width": 256}`.

    With `pretrained` the weights are the published ones of lite0 (images; 1,000 classes), minilm (English
    texts) or gemma3 (a language model), which are downloaded once. `classes` gives the model a new head for
    other classes. `model.processor` then holds what the weights expect: the tokenizer, or the statistics of
    pixels.

    Raises: UserError: there is no such model, a size is missing, or a setting does not fit.
    """
    sizes = {"classes": classes, "vocabulary": vocabulary, "channels": channels, "size": size}
    named = _whole_sizes({argument: value for argument, value in sizes.items() if value is not None})
    if not isinstance(pretrained, bool):
        raise UserError(f"pretrained={pretrained!r}: expected True or False")
    target = resolve_device(device)
    if pretrained:
        return _pretrained_model(name, named, seed, target, settings)
    task = task_of(_config(name, named, seed, settings or {}))
    task = task.bind(task.sized_processor(_model_sizes(name, task, named)))
    with generators_kept():
        return _as_module(build_model(task, target))


@plain_errors
def list_models(pattern: str = "*", *, pretrained: bool = False) -> list[str]:
    """Return the names that `create_model` knows and that match a shell pattern, such as `res*`, in order.

    With `pretrained`, return the names of published weights.
    """
    names = {*SHORT_NAMES, *SHORT_NAMES.values()} if pretrained else {*NETWORKS, *_presets_alone()}
    return sorted(name for name in names if fnmatchcase(name, pattern))


def _presets_alone() -> list[str]:
    """Return the presets whose models need no data."""
    configs = {name: parse_config(read_preset(name)) for name in preset_names()}
    return [name for name, config in configs.items() if task_of(config).model_sizes is not None]


def _whole_sizes(sizes: Mapping[str, Any]) -> dict[str, int]:
    """Return sizes as integers of Python.

    Raises: UserError: a size is no whole number from 1 on.
    """
    whole = {}
    for argument, value in sizes.items():
        try:
            whole[argument] = 0 if isinstance(value, bool) else index(value)
        except TypeError:
            whole[argument] = 0
        if whole[argument] < 1:
            raise UserError(f"{argument}={value!r}: expected a whole number from 1 on")
    return whole


def _config(name: str, sizes: Mapping[str, int], seed: int, settings: Mapping[str, Any]) -> Config:
    """Return the config of a preset or network with the user's settings, and the sizes of its images."""
    is_preset = name in preset_names() or name.endswith(".toml")
    config = load_config(name) if is_preset else network_config(name)
    own = {"training.seed": seed}
    if _reads_pixels(task_of(config)):
        own |= {f"data.image.{size}": sizes[size] for size in ("channels", "size") if size in sizes}
    overrides = [setting(key, value) for key, value in (own | dict(flatten(settings))).items()]
    return from_tables(config.model_dump(), parse_overrides(overrides))


def _reads_pixels(task: Task) -> bool:
    return any(f"{key}.".startswith("data.image.") for key in task.settings_read())


def _model_sizes(name: str, task: Task, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the sizes that the model needs.

    Raises: UserError: the model can't be made without data, a size is missing, or the model has no such size.
    """
    needed = task.model_sizes
    if needed is None:
        raise UserError(
            f"{name}: a model of task {task.name} is made from data alone: foveal.train(data, model='{name}')"
        )
    known = {*needed, *(("channels", "size") if _reads_pixels(task) else ())}
    for argument, value in sizes.items():
        if argument not in known:
            raise UserError(f"{argument}={value}: a model of {name} has no such size; leave it out")
    own = {size: sizes[size] for size in needed if size in sizes}
    if "classes" in needed and name in NETWORKS:
        own = {"classes": published_input(name)[2]} | own
    if missing := [size for size in needed if size not in own]:
        arguments = ", ".join(f"{size}=N" for size in missing)
        meanings = " and ".join(SIZES[size] for size in missing)
        raise UserError(f"{name} depends on {meanings}: foveal.create_model('{name}', {arguments})")
    return own


def _as_module(model: nn.Module) -> nn.Module:
    """Return a model as a module with a `forward` that returns logits, without models trained alongside."""
    if isinstance(model, DecoderLM):
        return LanguageModel(model)
    if auxiliary_models(model):
        return EncoderWithHead(model.get_submodule("encoder"), model.get_submodule("head"))
    return model


def _pretrained_model(
    name: str,
    sizes: Mapping[str, int],
    seed: int,
    device: torch.device,
    settings: Mapping[str, Any] | None,
) -> nn.Module:
    """Return a model with published weights.

    Raises: UserError: there are none of this name, they have other sizes, or can't be downloaded.
    """
    if not is_published(name):
        known = suggest(name, list_models(pretrained=True))
        raise UserError(f"{name}: no published weights of that name, so leave out pretrained=True{known}")
    if settings or sizes.keys() - {"classes"}:
        raise UserError(f"{name}: published weights fix all sizes but classes; leave out the others")
    run = published_run(name, log)
    base = open_task(run)
    classes = sizes.get("classes", len(base.labels))
    has_encoder = run.config.model.encoder.kind != "none"
    if not has_encoder and "classes" in sizes:
        raise UserError(f"{name}: a language model, which has no classes; leave out classes")
    if has_encoder and not classes:
        raise UserError(
            f"{name} has no head of its own: foveal.create_model('{name}', pretrained=True, classes=N)"
        )
    with generators_kept():
        if classes == len(base.labels):
            task = base
            task = task.bind(task.processor, build_model(task, device))
            load_run_weights(run, task)
        else:
            labeling = labeling_task(run.config.model.encoder.kind)
            config = from_tables(encoder_tables(run, labeling), {"training": {"seed": seed}})
            labels = LabelTarget().sized_processor({"classes": classes})
            task = labeling(config)
            task = task.bind(PairProcessor(base.processor_to_reuse(task), labels))
            task = task.bind(task.processor, build_model(task, device))
            load_encoder(run, task.model)
            task.reset_head()
    model = task.model if has_encoder else _as_module(task.model)
    model.processor = task.processor
    return model


@contextmanager
def generators_kept() -> Iterator[None]:
    """Restore the states of the global random generators, which a program of the user may rely on."""
    python, numpy = random.getstate(), np.random.get_state()
    with torch.random.fork_rng():
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
