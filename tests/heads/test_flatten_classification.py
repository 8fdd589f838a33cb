"""The head over all places at once against its equation, on grids of its own size, larger and smaller."""

from typing import Any

import pytest
import torch
from torch import Tensor

from foveal.core.memory import Memory, Segment
from foveal.heads.flatten_classification import FlattenClassificationHead
from tests.support.grid_memory import memory_of

D, CLASSES = 3, 4


def logits(head: FlattenClassificationHead, memory: Memory) -> Tensor:
    features, aux = head(memory)
    assert aux == {}
    return head.project(features)


def averaged(x: Tensor, rows: int, columns: int) -> Tensor:
    """The means of windows that cover the map: from floor(i h / rows) to ceil((i + 1) h / rows)."""
    _, _, h, w = x.shape
    return torch.stack(
        [
            x[
                :, :, i * h // rows : -(-(i + 1) * h // rows), j * w // columns : -(-(j + 1) * w // columns)
            ].mean((2, 3))
            for i in range(rows)
            for j in range(columns)
        ],
        1,
    )


@pytest.mark.parametrize("hidden", [(), (7,), (7, 5)])
@pytest.mark.parametrize(("h", "w"), [(2, 3), (4, 6), (5, 4), (2, 4)])
def test_the_head_equals_its_equation(h, w, hidden):
    head = FlattenClassificationHead(D, (2, 3), hidden, CLASSES, activation=torch.tanh).double()
    x = torch.randn(5, D, h, w, dtype=torch.float64)
    expected: Any = averaged(x, 2, 3).reshape(5, -1)
    for layer in head.hidden:
        expected = (expected @ layer.weight.T + layer.bias).tanh()
    expected = expected @ head.projection.weight.T + head.projection.bias
    torch.testing.assert_close(logits(head, memory_of(x)), expected, rtol=1e-10, atol=1e-10)


def test_torchvisions_first_layer_with_its_columns_in_our_order_gives_the_same():
    head = FlattenClassificationHead(D, (2, 3), (7,), CLASSES)
    x, layer = torch.randn(5, D, 2, 3), torch.nn.Linear(D * 6, 7)
    weight = layer.weight.detach().unflatten(1, (D, 6)).mT.flatten(1)
    head.hidden[0].load_state_dict({"weight": weight, "bias": layer.bias})
    expected = head.projection(layer(x.flatten(1)).relu())
    torch.testing.assert_close(logits(head, memory_of(x)), expected)


@pytest.mark.parametrize(("h", "w"), [(1, 3), (2, 2), (1, 1)])
def test_smaller_grids_are_refused(h, w):
    head = FlattenClassificationHead(D, (2, 3), (), CLASSES)
    with pytest.raises(ValueError, match=f"a grid of {h}x{w}, but this head was made for one of 2x3"):
        head(memory_of(torch.randn(1, D, h, w)))


@pytest.mark.parametrize("segments", [(), (Segment(0, 6, "times"),), (Segment(0, 3, "grid", (1, 3)),) * 2])
def test_a_memory_of_something_else_is_refused(segments):
    memory = memory_of(torch.randn(1, D, 2, 3))
    other = Memory(memory.vectors, memory.mask, memory.summary, segments)
    with pytest.raises(ValueError, match="a memory of no grid"):
        FlattenClassificationHead(D, (2, 3), (), CLASSES)(other)


def test_dropout_is_behind_the_hidden_layers_alone():
    head = FlattenClassificationHead(D, (1, 1), (400, 300), CLASSES, dropout=0.5, activation=torch.ones_like)
    features, _ = head(memory_of(torch.ones(1, D, 1, 1)))
    assert 0.4 < float(features.eq(0).float().mean()) < 0.6
    assert sorted(set(features.flatten().tolist())) == [0, 2]
    assert head.eval()(memory_of(torch.ones(1, D, 1, 1)))[0].eq(1).all()
    whole = FlattenClassificationHead(D, (1, 1), (), CLASSES, dropout=0.5)
    assert whole(memory_of(torch.ones(1, D, 1, 1)))[0].eq(1).all()
