"""The layers of a run that attend, captured while the run reads an input, with the names of positions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from foveal.core.errors import UserError
from foveal.core.memory import Memory
from foveal.inspection.capture.capture import capture
from foveal.inspection.capture.record import Record
from foveal.inspection.chosen_input import ChosenInput
from foveal.ops.attention.attention_map import AttentionMap, Indices

SITE = "/weights"
ENCODER = "encoder."
"""The start of the paths of an encoder's modules."""
CLASS_TOKEN, START = "class", "<start>"
MOST_POSITIONS = 8192
"""Positions of an input at most: the weights of a head take their square."""


@runtime_checkable
class AttendingModule(Protocol):
    """A module with heads of attention that can be removed."""

    @property
    def attention_heads(self) -> int:
        """The number of heads; 0 if the module does not attend."""

    def without_head(self, head: int) -> RemovableHandle:
        """Set the output of a head to zero, until the result's `remove()` is called."""


@dataclass(frozen=True)
class AttentionLayer:
    """The attention of a module for one input. `queries` and `keys` are the names of its positions."""

    path: str
    record: Record
    kind: str
    """self, causal, cross, or pooling, which has a single query."""
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    has_key_tokens: bool = False
    """Whether the keys are the tokens of a text."""
    grid: tuple[int, int] | None = None
    """The rows and columns of the keys, if they are places of an image. A class token may stand before."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """The numbers of heads, queries and keys."""
        _, H, T, S = self.record.shapes[0]
        return H, T, S

    @property
    def is_recomputed(self) -> bool:
        """Return whether weights are computed from queries and keys, while a kernel computed the outputs."""
        return isinstance(self.record.kept[0], AttentionMap)

    @property
    def deviation(self) -> float:
        """The largest difference of weights times values to the kernel's outputs, where they were compared;
        0 if they were not."""
        return getattr(self.record.kept[0], "deviation", None) or 0.0

    @property
    def is_self(self) -> bool:
        """Return whether query t and key t are the same position."""
        return self.kind in ("self", "causal") and self.shape[1] == self.shape[2]

    @property
    def class_tokens(self) -> int:
        """Keys before those of the grid."""
        return 0 if self.grid is None else self.shape[2] - self.grid[0] * self.grid[1]

    @property
    def places(self) -> Float[Tensor, "S P"]:
        """The place of each key: its number, or its row and column; NaN for a class token."""
        if self.grid is None:
            return torch.arange(float(self.shape[2]))[:, None]
        rows, columns = torch.meshgrid(*(torch.arange(float(size)) for size in self.grid), indexing="ij")
        places = torch.stack([rows.flatten(), columns.flatten()], 1)
        return torch.cat([places.new_full((self.class_tokens, 2), torch.nan), places])

    def weights(self, heads: Indices = None, rows: Indices = None) -> Float[Tensor, "H T S"]:
        """Return the weights of some heads and queries."""
        return self.record.weights(heads, rows)[0].float().cpu()

    def visibility(self, heads: Indices = None, rows: Indices = None) -> Bool[Tensor, "H T S"]:
        """Return which keys the queries see."""
        return self.record.visibility(heads, rows)[0].cpu()


def attending_modules(model: Any) -> dict[str, AttendingModule]:
    """Return the modules with heads of attention, by path."""
    modules = model.named_modules()
    return {
        path: module
        for path, module in modules
        if isinstance(module, AttendingModule) and module.attention_heads
    }


def capture_attention(model: Any, chosen: ChosenInput) -> list[AttentionLayer]:
    """Run the model on the input, and return its attention in the order of the computation.

    Raises: UserError: the model does not attend, or the input is too long.
    """
    if len(chosen.source) > MOST_POSITIONS:
        raise UserError(
            f"{chosen.name}: {len(chosen.source):,} positions, and maps of attention take "
            f"{MOST_POSITIONS:,} at most: give a shorter input"
        )
    memories = list[Memory]()
    encoder = getattr(model, "encoder", None)
    hook = encoder and encoder.register_forward_hook(lambda _, args, result: memories.append(result[0]))
    try:
        with torch.inference_mode(), capture(model, f"*{SITE}") as captured:
            chosen.log_probabilities()
    finally:
        if hook:
            hook.remove()
    modules, memory = dict(model.named_modules()), memories[0] if memories else None
    return [
        _layer(name.removesuffix(SITE), record, modules, memory, chosen) for name, record in captured.items()
    ]


def _layer(
    path: str, record: Record, modules: dict[str, Any], memory: Memory | None, chosen: ChosenInput
) -> AttentionLayer:
    _, _, T, S = record.shapes[0]
    in_encoder = path.startswith(ENCODER)
    names, grid, has_tokens = _memory_names(memory, chosen)
    if getattr(modules.get(path), "attends_to_memory", False):
        queries, keys = _fitted(chosen.target, T), _fitted(names, S)
        return AttentionLayer(path, record, "cross", queries, keys, has_tokens, grid)
    if T == 1 and not in_encoder and S == len(names) > 1:
        return AttentionLayer(path, record, "pooling", _fitted(chosen.target, T), names, has_tokens, grid)
    kind = "causal" if S > 1 and not bool(record.visibility(rows=0)[0, 0, 0, S - T + 1 :].any()) else "self"
    if not in_encoder:
        read = chosen.source if memory is None else (START, *chosen.target[:-1])
        return AttentionLayer(path, record, kind, _fitted(read, T), _fitted(read, S), True)
    if grid is not None and S in (len(names), len(names) + 1):
        names = (*[CLASS_TOKEN] * (S - len(names)), *names)
    else:
        grid = None
    read = chosen.source if len(chosen.source) == S else names
    return AttentionLayer(path, record, kind, _fitted(read, T), _fitted(read, S), has_tokens, grid)


def _memory_names(
    memory: Memory | None, chosen: ChosenInput
) -> tuple[tuple[str, ...], tuple[int, int] | None, bool]:
    """Return the name of each vector of the memory, the grid if all of them are places of an image, and
    whether all are tokens."""
    names = list[str]()
    segments = () if memory is None else memory.segments
    for segment in segments:
        if segment.grid is not None:
            rows, columns = segment.grid
            names += [f"{row},{column}" for row in range(rows) for column in range(columns)]
        else:
            names += _spread(chosen.source, segment.length)
    grid = segments[0].grid if len(segments) == 1 else None
    return tuple(names), grid, all(segment.kind == "tokens" for segment in segments)


def _spread(names: Sequence[str], count: int) -> list[str]:
    """Return the name of the first position that each of `count` vectors stands for, which may be several."""
    if not names:
        return [str(position) for position in range(count)]
    return [names[position * len(names) // count] for position in range(count)]


def _fitted(names: Sequence[str], count: int) -> tuple[str, ...]:
    """Return the names, or numbers if there are more or fewer positions."""
    return tuple(names) if len(names) == count else tuple(map(str, range(count)))


def find_layer(layers: Sequence[AttentionLayer], named: str) -> AttentionLayer:
    """Return the layer with a number, counted from 0, or a path, of which an unambiguous part suffices.

    Raises: UserError: there is no such layer, or there are several.
    """
    if named.isdigit() and int(named) < len(layers):
        return layers[int(named)]
    matching = [layer for layer in layers if named in layer.path]
    exact = [layer for layer in matching if layer.path == named]
    if len(exact or matching) == 1:
        return (exact or matching)[0]
    listed = ", ".join(f"{number} ({layer.path})" for number, layer in enumerate(layers))
    raise UserError(f"--layer {named}: name one layer that attends, by number or path: {listed}")
