"""The order in which the gradients of slots are added up: a binary tree, whatever process computed which
slot.

Sums of floating-point numbers depend on their order. With one order for any number of processes, the weights
are equal bit for bit.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Generic, NamedTuple, TypeVar

import torch
from torch import Tensor

Value = TypeVar("Value")
Gradients = list[Tensor | None]
"""The gradient of each trained weight; None of a weight that the slots did not use."""


class Node(NamedTuple):
    """The sum of the slots from `place * 2^level` up to the next node of the level, or to the last slot."""

    level: int
    place: int


class TreeSum(Generic[Value]):
    """Adds up the values of `slots` slots in the order of the tree, by `add`.

    Sums of slots that follow each other are added as soon as they are known, so at most log2(slots) are held.
    """

    def __init__(self, slots: int, add: Callable[[Value, Value], Value]):
        self.slots, self._add = slots, add
        self.nodes: dict[Node, Value] = {}

    def add(self, node: Node, value: Value) -> None:
        """Add the sum of a node's slots."""
        self.nodes[node] = value
        while (parent := self._parent(node)) is not None:
            left, right = Node(node.level, 2 * parent.place), Node(node.level, 2 * parent.place + 1)
            if left not in self.nodes or (self._exists(right) and right not in self.nodes):
                return
            total = self.nodes.pop(left)
            if self._exists(right):
                total = self._add(total, self.nodes.pop(right))
            node = parent
            self.nodes[node] = total

    def total(self) -> Value:
        """Return the sum of all slots.

        Raises: ValueError: not all slots were added.
        """
        if len(self.nodes) != 1 or self._parent(next(iter(self.nodes))) is not None:
            raise ValueError(f"only the sums of {sorted(self.nodes)} of {self.slots} slots were added")
        return next(iter(self.nodes.values()))

    def own_total(self) -> Value:
        """Return the sum of the slots that were added, which need not be all."""
        return reduce(self._add, (self.nodes[node] for node in sorted(self.nodes, key=lambda n: n.place)))

    def _parent(self, node: Node) -> Node | None:
        """Return the node above; None at the root."""
        return None if 1 << node.level >= self.slots else Node(node.level + 1, node.place // 2)

    def _exists(self, node: Node) -> bool:
        return node.place << node.level < self.slots


def largest_nodes(slots: int, own: range) -> list[Node]:
    """Return the nodes into which the slots `own` are added, in order."""
    tree = TreeSum(slots, int.__add__)
    for slot in own:
        tree.add(Node(0, slot), 1)
    return sorted(tree.nodes, key=lambda node: node.place << node.level)


def add_gradients(left: Gradients, right: Gradients) -> Gradients:
    """Return the sum of two lists of gradients, in the storage of the left. None is no gradient."""
    return [
        second if first is None else first if second is None else first.add_(second)
        for first, second in zip(left, right, strict=True)
    ]


def flatten(gradients: Gradients, like: Sequence[Tensor]) -> Tensor:
    """Return gradients one after another, then for each whether there is one, as numbers. `like` are the
    weights."""
    present = torch.tensor([gradient is not None for gradient in gradients], dtype=like[0].dtype)
    values = [
        weight.new_zeros(weight.numel()) if gradient is None else gradient.reshape(-1)
        for gradient, weight in zip(gradients, like, strict=True)
    ]
    return torch.cat([*values, present.to(like[0].device)])


def unflatten(flat: Tensor, like: Sequence[Tensor]) -> Gradients:
    """Return the gradients that `flatten` joined."""
    sizes = [*(weight.numel() for weight in like), len(like)]
    *values, present = flat.split(sizes)  # type: ignore[no-untyped-call]
    return [
        value.view_as(weight) if exists else None
        for value, weight, exists in zip(values, like, present.tolist(), strict=True)
    ]
