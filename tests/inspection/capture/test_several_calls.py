"""What a record says of a module that was called more than once, and of the axes of its attention."""

import pytest
import torch
from torch import nn

from foveal import UserError, capture
from foveal.inspection.capture.record import Record
from foveal.ops.attention.attention_map import AttentionMap

B, H, T, S, K = 2, 3, 4, 6, 5


class Attending(nn.Module):
    """Calls torch's attention as any model may."""

    def forward(self, q, k, mask=None):
        return nn.functional.scaled_dot_product_attention(q, k, k, attn_mask=mask)


class WrittenOut(nn.Module):
    """Computes weights with a softmax over the keys, or over the queries, which is no attention."""

    def __init__(self, axis):
        super().__init__()
        self.axis = axis

    def forward(self, scores):
        return scores.softmax(self.axis)


@pytest.fixture
def queries_and_keys():
    torch.manual_seed(0)
    return torch.randn(B, H, T, K), torch.randn(B, H, S, K)


def test_the_gradient_of_a_value_is_the_sum_over_losses():
    model, x = nn.Linear(3, 4), torch.randn(5, 3)
    with capture(model, "grad:/output") as record:
        y = model(x)
        (2 * y).sum().backward(retain_graph=True)
        (3 * y).sum().backward()
    assert record["grad:/output"][0].eq(5).all()


def test_the_largest_deviation_of_all_calls_is_told(queries_and_keys):
    record, (q, k) = Record("mixer/weights", 1000), queries_and_keys
    for deviation in (0.25, 0.5, 0.125):
        record.kept.append(AttentionMap(q, k, deviation=deviation))
    assert record.exactness == "recomputed (largest deviation 5.0e-01)"


def test_each_call_has_weights_and_visible_keys_of_its_own(queries_and_keys):
    q, k = queries_and_keys
    mask = torch.arange(S).expand(T, S) < 2
    with torch.no_grad(), capture(model := Attending(), "*/weights") as record:
        model(q, k)
        model(q, k, mask)
    first, second = record["/weights"]
    assert first.ne(0).all()
    assert torch.equal(second.ne(0), mask.expand(B, H, T, S))
    assert record["/weights"].visibility(call=0).all()
    assert torch.equal(record["/weights"].visibility(call=1), mask.expand(B, H, T, S))


def test_the_last_key_is_inside_and_the_query_after_the_last_is_not(queries_and_keys):
    with torch.no_grad(), capture(model := Attending(), "*/weights") as record:
        model(*queries_and_keys)
    weights = record["/weights"]
    assert torch.equal(weights.weights(columns=S - 1), weights[0][..., S - 1 :])
    with pytest.raises(UserError, match=f"{H} heads, {T} queries and {S} keys"):
        weights.weights(rows=T)


def test_the_room_for_weights_is_that_of_all_rows_of_the_batch(queries_and_keys):
    size = B * H * T * S * 4
    record = Record("mixer/weights", size - 1)
    record.kept.append(AttentionMap(*queries_and_keys))
    with pytest.raises(UserError, match=r"3 heads x 4 queries x 6 keys take 576 B, more than .* 575 B"):
        record.weights()
    assert record.weights(columns=slice(1, None)).shape == (B, H, T, S - 1)


@pytest.mark.parametrize("axis", [3, -1])
def test_a_softmax_over_the_keys_is_attention(axis):
    with torch.no_grad(), capture(model := WrittenOut(axis), "*/weights") as record:
        expected = model(torch.randn(B, H, T, S))
    assert torch.equal(record["/weights"][0], expected)


@pytest.mark.parametrize("axis", [2, -2])
def test_a_softmax_over_the_queries_is_none(axis):
    model = WrittenOut(axis)
    with torch.no_grad(), pytest.raises(UserError, match="matches no value"), capture(model, "*/weights"):
        model(torch.randn(B, H, T, S))
