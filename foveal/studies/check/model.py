"""Check of a model before its training: that of a preset, a TOML file, or an image network."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import nn

from foveal.config import Config
from foveal.core.module_facts import HasInputBlock
from foveal.core.runtime import seed_everything
from foveal.encoders.series import SeriesEncoder
from foveal.encoders.text import TextEncoder
from foveal.heads.decoder_lm import DecoderLM
from foveal.layers.data_dependent_init import DataDependentInit
from foveal.layers.initialization import initialize
from foveal.models.encoder import EncoderWithHead
from foveal.models.mixer_settings import samples_positions, stack_mixers
from foveal.studies.check.example_sources import source_of_sizes
from foveal.studies.check.law import LawResult, check_laws
from foveal.studies.check.parts_of_model import check_parts_of_model
from foveal.studies.check.whole_model import WholeModel, laws_of_model
from foveal.tasks.base import Task
from foveal.tasks.registry import task_of

NOISE = 0.02
"""Deviation of the noise that is added to the first weights, so that no part begins silent."""


def check_model(config: Config) -> Iterator[LawResult]:
    """Yield the results of the laws of a model with its first weights."""
    task = task_of(config)
    make = partial(first_model, task)
    model = make(0)
    whole = whole_model(task, model, lambda: make(1))
    yield from check_whole(whole, task)
    yield from check_parts_of_model(model, whole)


def check_whole(whole: WholeModel | None, task: Task) -> Iterator[LawResult]:
    """Yield the results of the laws of a whole model."""
    if whole is None:
        reason = f"the objective of {task.name} calls the parts of its model; the parts are checked below"
        yield LawResult("model", "its laws", "not applicable", reason)
        return
    yield from check_laws("model", lambda: laws_of_model(whole))


def whole_model(task: Task, model: Any, another: Callable[[], nn.Module]) -> WholeModel | None:
    """Return a model with what it reads; None if its objective calls its parts in a way of its own."""
    ties = task.config.model.tie_embeddings
    if isinstance(model, DecoderLM):
        return WholeModel(model, None, ties_tables=ties, another=another)
    sizes = task.source_sizes
    if sizes is None or not hasattr(model, "head"):
        return None
    same = type(model) is EncoderWithHead  # else other models are trained beside it
    plain = model if same else EncoderWithHead(model.encoder, model.head)
    example = source_of_sizes(sizes)
    return WholeModel(
        plain,
        example,
        _ignores_order(task, model),
        ties,
        samples_positions(task.config.model) if task.has_decoder else False,
        another if same else None,
    )


def first_model(task: Task, seed: int) -> nn.Module:
    """Return the model of a task with first weights, to which some noise is added."""
    seed_everything(seed, "check")
    model = task.example_model()
    head: Any = model.get_submodule("head") if hasattr(model, "head") else model
    initialize(model, task.config.model.initialization, head.get_submodule("projection"))
    _fit_first_block(task, model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=NOISE)
    return model.eval()


def _fit_first_block(task: Task, model: Any) -> None:
    """Fit the first block of an encoder to example sources, if its weights come from training data."""
    encoder = getattr(model, "encoder", None)
    first = encoder.input_block() if isinstance(encoder, HasInputBlock) else encoder
    if isinstance(first, DataDependentInit) and task.source_sizes is not None:
        _, values, lengths = source_of_sizes(task.source_sizes)
        # Thresholds that are outputs of the rows under check would differ by rounding alone.
        values = -values.float() if values.is_floating_point() else values
        first.fit(values, *([] if lengths is None else [torch.tensor(lengths)]))


def _ignores_order(task: Task, model: Any) -> bool:
    """Return whether the config says that an encoder of texts or series does not know their order."""
    config = task.config.model
    encoder = config.encoder
    if not isinstance(model.encoder, TextEncoder | SeriesEncoder) or encoder.causal:
        return False
    whole_rows = all(spec.sees_whole_row for spec, _ in stack_mixers(encoder, "model.encoder").values())
    pools = encoder.pooling == "mean" and config.head_pooling != "last"
    return whole_rows and pools and encoder.positions.kind == "none"
