"""The laws of the parts of a model: one mixer of each class, the encoder, and the head."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, NamedTuple

import torch
from torch import nn

from foveal.laws.module_states import example_memory
from foveal.laws.trial import Trial
from foveal.layers.blocks.mixer_block import Block
from foveal.studies.check.law import LawResult, check_laws
from foveal.studies.check.part_laws import (
    laws_of_encoder,
    laws_of_head,
    laws_of_mixer,
    laws_of_whole_row_mixer,
)
from foveal.studies.check.whole_model import WholeModel

TOLERANCE = 1e-9


class ModelPart(NamedTuple):
    """A part of a model, with its name in the model."""

    name: str
    module: Any


def check_parts_of_model(model: nn.Module, whole: WholeModel | None) -> Iterator[LawResult]:
    """Yield the results of each part's laws."""
    width = int(getattr(getattr(model, "encoder", None), "width", 0))
    for part in mixers_of(model):
        yield from check_laws(part.name, lambda part=part: _mixer_laws(part.module, width))  # type: ignore[misc]
    if whole is None or whole.example is None:
        return
    encoder: Any = whole.model.encoder
    name, example = f"encoder ({type(encoder).__name__})", whole.example
    yield from check_laws(name, lambda: laws_of_encoder(lambda: _copy(encoder), example, False))
    head, classes = whole.head, getattr(whole.head, "classes", 0)
    if classes and not hasattr(head, "grid"):  # the head of a grid is checked in the model
        name = f"head ({type(head).__name__})"
        yield from check_laws(
            name, lambda: laws_of_head(lambda: _copy(head), head.width, classes, whole.each_place)
        )


def mixers_of(model: nn.Module) -> list[ModelPart]:
    """Return the first mixer of each class in the blocks of a model."""
    parts: dict[str, ModelPart] = {}
    for name, block in model.named_modules():
        if isinstance(block, Block):
            kind = _kind(block.mixer)
            parts.setdefault(kind, ModelPart(f"{name}.mixer ({kind})", block.mixer))
    return [*parts.values()]


def _kind(mixer: Any) -> str:
    """Return the class of a mixer, with those of the mixers or of the cell that it runs."""
    inner = [type(part).__name__ for part in mixer.children() if hasattr(part, "d_in")]
    return f"{type(mixer).__name__} of {inner[0]}" if inner else type(mixer).__name__


def _mixer_laws(mixer: Any, memory_width: int) -> Iterator[Any]:
    reads_memory = hasattr(mixer, "attends_to_memory") and mixer.attends_to_memory

    def trial() -> Trial:
        memory = example_memory(memory_width, torch.float64) if reads_memory else None
        return Trial(_copy(mixer), mixer.d_in, torch.float64, TOLERANCE, standing_nan=False, memory=memory)

    if not reads_memory and mixer.init_state(1) is None:
        return laws_of_whole_row_mixer(trial)
    return laws_of_mixer(trial)


def _copy(module: nn.Module) -> nn.Module:
    return deepcopy(module).double().eval()
