"""What a model loses without a unit: the unit is held at its mean while the model reads a text."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveal.core.state import State
from foveal.heads.decoder_lm import DecoderLM
from foveal.inspection.capture.modules import published_paths
from foveal.inspection.read_states import read_chunks
from foveal.layers.mixers.recurrent import Recurrent


@torch.inference_mode()
def log_probability(model: DecoderLM, tokens: Int[Tensor, "R T"], window: int) -> float:
    """Return the mean log-probability in nats of every token but the first of each row."""
    total, start = 0.0, 1
    for chunk in read_chunks(model, tokens, window):
        targets = tokens[:, start : start + chunk.features.shape[1]]
        features = chunk.features[:, : targets.shape[1]]
        if targets.numel():
            total -= float(model.losses(features.flatten(0, 1), targets.flatten()).nll)
        start += chunk.features.shape[1]
    return total / (tokens.numel() - len(tokens))


def log_probability_without(
    model: DecoderLM, layer: str, unit: int, tokens: Int[Tensor, "R T"], window: int
) -> float:
    """Return the same while a unit is held at its mean over the text, in every part of its layer's state."""
    path, parts = layer.rpartition("/")[0], state_parts(model, layer)
    names = [f"{path}/{part}" for part in parts]
    sums = dict.fromkeys(parts, 0.0)
    for chunk in read_chunks(model, tokens, window, names):
        for part, name in zip(parts, names, strict=True):
            sums[part] += float(chunk.states[name][..., unit].double().sum())
    means = {part: total / tokens.numel() for part, total in sums.items()}
    with held_unit(model, layer, unit, means):
        return log_probability(model, tokens, window)


def state_parts(model: nn.Module, layer: str) -> list[str]:
    """Return the parts of the state to which a named one belongs, such as c and h."""
    module = _module_of(model, layer)
    return [*module.cell.sizes] if isinstance(module, Recurrent) else ["features"]


def held_unit(
    model: nn.Module, layer: str, unit: int, means: dict[str, float]
) -> AbstractContextManager[None]:
    """Return a context in which a unit has the same value after each step, in each part of its state."""
    module = _module_of(model, layer)
    clamped = _clamped_cell if isinstance(module, Recurrent) else _clamped_features
    return clamped(module, unit, means)


def _module_of(model: nn.Module, layer: str) -> Any:
    return {name: each for each, name in published_paths(model).items()}[layer.rpartition("/")[0]]


@contextmanager
def _clamped_cell(mixer: Any, unit: int, means: dict[str, float]) -> Iterator[None]:
    """Hold a unit of a cell's state after each step, and in the output if this is the state."""
    step = mixer.cell.step

    def clamped_step(p: Float[Tensor, "B P"], state: State) -> tuple[Tensor, State]:
        y, after = step(p, state)
        held = {part: _hold(values, unit, means[part]) for part, values in after.items()}
        return next((held[part] for part, values in after.items() if values is y), y), held

    # No kernel has the states between, so the layer runs step by step.
    mixer.cell.step, mixer.cell.fast_path = clamped_step, str
    try:
        yield
    finally:
        del mixer.cell.step, mixer.cell.fast_path


@contextmanager
def _clamped_features(block: nn.Module, unit: int, means: dict[str, float]) -> Iterator[None]:
    """Hold a unit of a block's output."""

    def hook(module: nn.Module, inputs: Any, result: tuple[Tensor, State, Any]) -> tuple[Tensor, State, Any]:
        x, state, aux = result
        return _hold(x, unit, means["features"]), state, aux

    handle = block.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


def _hold(values: Tensor, unit: int, mean: float) -> Tensor:
    return values.index_fill(-1, torch.tensor([unit], device=values.device), mean)
