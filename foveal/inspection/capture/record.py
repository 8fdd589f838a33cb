"""What was captured under a name: a value for each call of the module."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from foveal.core.errors import UserError
from foveal.core.tap import TAP_SITES, StepStates
from foveal.ops.attention.attention_map import (
    AttentionMap,
    Indices,
    resolve_indices,
    visibility_tile,
    weights_tile,
)
from foveal.ui.console import format_bytes


class Gradient:
    """The gradient of a loss for a value, which arrives with `backward`.

    For the states of a recurrence it is the gradient at every step, through all later steps.
    """

    def __init__(self, value: Tensor | StepStates):
        self.tensor: Tensor | None = None
        if isinstance(value, Tensor):
            value.register_hook(self._add)  # type: ignore[no-untyped-call]
            return
        for t, state in enumerate(value.steps):
            if state.requires_grad:
                add_step = partial(self._add_step, t, len(value.steps))
                state.register_hook(add_step)  # type: ignore[no-untyped-call]

    def _add(self, gradient: Tensor) -> None:
        self.tensor = gradient.clone() if self.tensor is None else self.tensor + gradient

    def _add_step(self, t: int, steps: int, gradient: Tensor) -> None:
        if self.tensor is None:
            self.tensor = gradient.new_zeros(len(gradient), steps, *gradient.shape[1:])
        self.tensor[:, t] += gradient


KeptValue = Tensor | AttentionMap | Gradient


class Record:
    """The values of one name, in the order of the calls. `record[0]` is the whole value of the first call.

    Of attention only queries and keys are kept. `weights` computes a tile; an index computes all weights.
    """

    def __init__(self, name: str, budget: int):
        self.name = name
        self.kept = list[KeptValue]()
        self._budget = budget

    @property
    def dims(self) -> tuple[str, ...]:
        """The names of the axes; empty for an output of any module, whose axes nobody has named."""
        site = TAP_SITES.get(self.name.rpartition("/")[2])
        return site.dims if site else ()

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shape of each value. Weights of attention need not be computed for it."""
        return [tuple((_arrived(self.name, x) if isinstance(x, Gradient) else x).shape) for x in self.kept]

    @property
    def exactness(self) -> str:
        """Say how the values came about: `exact`, or `recomputed` with the largest deviation from the kernel.

        The deviation is of weights times values, for up to 16 queries of each head, measured in the capture.
        """
        maps = [value for value in self.kept if isinstance(value, AttentionMap)]
        if not maps:
            return "exact"
        deviations = [value.deviation for value in maps if value.deviation is not None]
        if len(deviations) < len(maps):
            return "recomputed (not compared with the kernel)"
        return f"recomputed (largest deviation {max(deviations):.1e})"

    def __len__(self) -> int:
        return len(self.kept)

    def __iter__(self) -> Iterator[Tensor]:
        return (self[call] for call in range(len(self)))

    def __getitem__(self, call: int) -> Tensor:
        value = self.kept[call]
        if isinstance(value, AttentionMap):
            return self.weights(call=call)
        return _arrived(self.name, value) if isinstance(value, Gradient) else value

    def weights(
        self, heads: Indices = None, rows: Indices = None, columns: Indices = None, call: int = 0
    ) -> Tensor:
        """Return attention weights (batch, head, query, key) of some heads, queries (rows) and keys
        (columns).

        Each is a number, a slice, a list, or None for all. All four axes are kept. Every query's weights are
        exact, also if only some of its keys are returned.

        Raises: UserError: the record is of no attention, or the tile is larger than the budget.
        """
        value = self._attention(call)
        B, H, T, S = value.shape
        try:
            parts = zip((heads, rows, columns), (H, T, S), strict=True)
            h, t, s = (len(resolve_indices(part, size, torch.device("cpu"))) for part, size in parts)
        except IndexError:
            raise UserError(
                f"{self.name} has {H} heads, {T} queries and {S} keys, counted from 0: "
                f"heads={heads}, rows={rows}, columns={columns} are not all inside"
            ) from None
        size = B * h * t * s * value.dtype.itemsize
        if size > self._budget:
            raise UserError(
                f"{self.name}: {h} heads x {t} queries x {s} keys take {format_bytes(size)}, more than the "
                f"budget of {format_bytes(self._budget)}: ask for a tile, such as heads=0, rows=slice(512), "
                "or give a larger budget="
            )
        return weights_tile(value, heads, rows, columns)

    def visibility(
        self, heads: Indices = None, rows: Indices = None, columns: Indices = None, call: int = 0
    ) -> Tensor:
        """Return which keys the queries of a tile see, as truth values (batch, head, query, key).

        A weight of 0 is masked, or so small that it was rounded to 0.

        Raises: UserError: the record is of no attention.
        """
        return visibility_tile(self._attention(call), heads, rows, columns)

    def _attention(self, call: int) -> Tensor | AttentionMap:
        value = self.kept[call]
        if isinstance(value, Gradient) or not self.name.endswith("/weights"):
            raise UserError(f"{self.name} is no attention: only names that end in /weights have tiles")
        return value


def _arrived(name: str, gradient: Gradient) -> Tensor:
    if gradient.tensor is None:
        raise UserError(f"no gradient has reached {name}: call backward() on a loss that depends on it")
    return gradient.tensor
