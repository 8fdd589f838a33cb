"""Sums in the order of a tree are equal bit for bit, whatever process adds up which slots."""

import itertools

import pytest
import torch
from torch import Tensor

from foveal.distributed.tree import Node, TreeSum, add_gradients, flatten, largest_nodes, unflatten
from foveal.distributed.world import own_slots

CUTS = [(slots, ranks) for slots in range(1, 13) for ranks in range(1, slots + 1) if slots % ranks == 0]


def write_sum(left: str, right: str) -> str:
    return f"({left}+{right})"


def written(slots: int, order: list[int]) -> str:
    """Return the sum of all slots, added in this order."""
    tree = TreeSum(slots, write_sum)
    for slot in order:
        tree.add(Node(0, slot), str(slot))
    return tree.total()


def test_neighbors_are_added_first() -> None:
    assert written(1, [0]) == "0"
    assert written(4, [0, 1, 2, 3]) == "((0+1)+(2+3))"
    assert written(5, [0, 1, 2, 3, 4]) == "(((0+1)+(2+3))+4)"
    assert written(6, [0, 1, 2, 3, 4, 5]) == "(((0+1)+(2+3))+(4+5))"
    assert written(7, [0, 1, 2, 3, 4, 5, 6]) == "(((0+1)+(2+3))+((4+5)+6))"


@pytest.mark.parametrize("order", [*itertools.permutations(range(5))])
def test_the_order_in_which_slots_come_does_not_count(order: tuple[int, ...]) -> None:
    assert written(5, [*order]) == "(((0+1)+(2+3))+4)"


@pytest.mark.parametrize(("slots", "ranks"), CUTS)
def test_ranks_add_up_as_one_process(slots: int, ranks: int) -> None:
    whole, most = TreeSum(slots, write_sum), 0
    for rank in range(ranks):
        own, tree = own_slots(slots, rank, ranks), TreeSum(slots, write_sum)
        for slot in own:
            tree.add(Node(0, slot), str(slot))
        assert sorted(tree.nodes) == sorted(largest_nodes(slots, own))
        most = max(most, len(tree.nodes))
        for node, total in tree.nodes.items():
            whole.add(node, total)
    assert whole.total() == written(slots, [*range(slots)])
    each = slots // ranks
    assert most <= max(1, 2 * (each.bit_length() - 1)), "few sums are held and sent"


def test_a_missing_slot_is_noticed() -> None:
    tree = TreeSum(4, int.__add__)
    for slot in (0, 1, 3):
        tree.add(Node(0, slot), 1)
    with pytest.raises(ValueError, match="of 4 slots"):
        tree.total()


def test_a_weight_that_a_slot_does_not_use_has_the_gradient_of_the_others() -> None:
    tree = TreeSum(2, add_gradients)
    tree.add(Node(0, 0), [None, torch.tensor([1.0]), None])
    tree.add(Node(0, 1), [torch.tensor([2.0]), torch.tensor([3.0]), None])
    first, second, third = tree.total()
    assert first is not None
    assert second is not None
    assert (first.item(), second.item(), third) == (2.0, 4.0, None)


def test_gradients_are_joined_and_cut_again() -> None:
    weights = [torch.zeros(2, 3), torch.zeros(()), torch.zeros(4)]
    gradients: list[Tensor | None] = [torch.randn(2, 3), torch.randn(()), None]
    again = unflatten(flatten(gradients, weights), weights)
    assert again[2] is None
    for before, after in zip(gradients[:2], again[:2], strict=True):
        assert before is not None
        assert after is not None
        assert torch.equal(before, after)
