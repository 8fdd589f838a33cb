"""The memory of a process that uses a model: the weights by precision, and the state of a row."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from foveal.core.shapes_only import shapes_only
from foveal.core.state import State, map_state
from foveal.heads.decoder_lm import DecoderLM
from foveal.studies.plan.layout import Layout

WEIGHT_BYTES = {"float32": 4, "16 bits": 2, "8 bits": 1}
"""Bytes of a weight in each precision."""
STATE_BYTES = 2
"""Bytes of a number of a state, such as a key or a value."""


@dataclass(frozen=True)
class InferenceMemory:
    """The memory of one of the processes that split a model."""

    parameters: int
    """Those of the process."""
    positions: int
    """Positions of a row whose state is held."""
    state: int
    """Bytes of the state of a row: keys and values in 16 bits. 0 for models other than language models, whose
    states are not counted."""

    def weights(self) -> dict[str, int]:
        """Return the bytes of the weights in each precision."""
        return {precision: size * self.parameters for precision, size in WEIGHT_BYTES.items()}


def inference_memory(model: nn.Module, parameters: int, positions: int, layout: Layout) -> InferenceMemory:
    """Return the memory of a process that uses a model of fake tensors, of which it holds some parameters."""
    if not isinstance(model, DecoderLM):
        return InferenceMemory(parameters, 0, 0)
    with shapes_only():
        size = state_size(model.init_state(None, 1, positions))
    return InferenceMemory(parameters, positions, STATE_BYTES * size // (layout.tp * layout.pp))


def state_size(state: State) -> int:
    """Return how many numbers a state holds, such as those of keys and values."""
    sizes = list[int]()
    map_state(lambda leaf: sizes.append(leaf.numel() if _has_numbers(leaf) else 0), state)
    return sum(sizes)


def _has_numbers(leaf: Any) -> bool:
    """Return whether a leaf of a state has numbers that are computed, and no counts."""
    return isinstance(leaf, Tensor) and leaf.is_floating_point()
