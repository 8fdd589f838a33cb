"""Each step of the attention layer against its sums written out, torch, and the step before it.

E3, E4 ... are entries of docs/errata.md, a list of mistakes on lecture slides.
"""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck

from foveal.ops.attention import step_by_step as steps
from foveal.ops.attention.dot_product import masked_softmax

B, T, S, K, D, H = 3, 4, 5, 6, 8, 2
pytestmark = pytest.mark.usefixtures("exact")


@pytest.fixture
def exact():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


def softmax(scores: list[Tensor]) -> list[Tensor]:
    total = sum(e.exp() for e in scores)
    return [e.exp() / total for e in scores]


W, U, V, G = (torch.randn(shape, dtype=torch.float64) for shape in ((7, K), (7, D), (7,), (K, D)))
SCORES = {
    "additive": (lambda s, h: steps.mlp_scores(s, h, W, U, V), lambda s, h: V @ (W @ s + U @ h).tanh(), D),
    "dot": (steps.dot_scores, lambda s, h: sum(s[n] * h[n] for n in range(K)), K),
    "general": (lambda s, h: steps.general_scores(s, h, G), lambda s, h: s @ G @ h, D),
    "scaled": (steps.scaled_dot_scores, lambda s, h: s @ h / math.sqrt(K), K),
}
"""The function, the score of one pair written out, and the width of the memory."""


@pytest.mark.parametrize("name", list(SCORES))
def test_one_query(name):
    """`c = sum_i a_i h_i`, the sums written out."""
    score, of_a_pair, width = SCORES[name]
    s, h = torch.randn(B, K), torch.randn(B, S, width)
    a = masked_softmax(score(s, h))
    c = steps.weighted_sum(a, h)
    for b in range(B):
        expected = softmax([of_a_pair(s[b], h[b, i]) for i in range(S)])
        close(a[b], torch.stack(expected))
        close(c[b], torch.as_tensor(sum(expected[i] * h[b, i] for i in range(S))))


def test_a_linear_score_does_not_depend_on_the_query():
    """E6: of `w . [s; h_i]` the softmax cancels `w_s . s`; the tanh in between is what makes it attention."""
    s, other, h, w = torch.randn(B, K), torch.randn(B, K), torch.randn(B, S, D), torch.randn(K + D)
    s.requires_grad_()

    def linear(s: Tensor) -> Tensor:
        pairs = torch.cat([s[:, None].expand(-1, S, -1), h], 2)
        return (pairs @ w).softmax(1)

    close(linear(s), linear(other))
    (gradient,) = torch.autograd.grad(linear(s)[:, 0].sum(), s)
    close(gradient, torch.zeros_like(gradient))

    def mlp(s: Tensor) -> Tensor:
        return masked_softmax(steps.mlp_scores(s, h, W, U, V))

    assert (mlp(s) - mlp(other)).abs().amax(1).min() > 1e-2
    (gradient,) = torch.autograd.grad(mlp(s)[:, 0].sum(), s)
    assert gradient.abs().amax(1).min() > 1e-6


def test_dot_is_general_with_the_identity():
    s, h = torch.randn(B, K), torch.randn(B, S, K)
    close(steps.general_scores(s, h, torch.eye(K)), steps.dot_scores(s, h))
    close(steps.dot_scores(s, h) / math.sqrt(K), steps.scaled_dot_scores(s, h))


def test_the_scale_keeps_the_variance():
    width = 256
    s, h = torch.randn(400, width), torch.randn(400, 50, width)
    assert abs(float(steps.scaled_dot_scores(s, h).var()) - 1) < 0.05
    assert float(steps.dot_scores(s, h).var()) > 0.95 * width


def test_one_hot_weights_read_one_vector():
    """E5: `W` times the one-hot vector of 3 is its column (w_13, w_23, w_33 ...): the first index runs."""
    h, chosen = torch.randn(B, S, D), torch.tensor([3, 0, 4])
    one_hot = torch.eye(S)[chosen]
    assert torch.equal(steps.weighted_sum(one_hot, h), h[torch.arange(B), chosen])
    columns = h.mT  # (D, S): one column a vector
    close(steps.weighted_sum(one_hot, h), torch.stack([columns[b] @ one_hot[b] for b in range(B)]))


def test_each_step_is_a_case_of_the_next():
    q, h, one = torch.randn(B, T, K), torch.randn(B, S, K), torch.eye(K)
    many = steps.batched_query_attention(q, h)
    close(many, torch.stack([steps.single_query_attention(q[:, t], h) for t in range(T)], 1))
    close(steps.key_value_attention(q, h, one, one), many)
    everything = torch.ones(1, 1, S, dtype=torch.bool)
    W_q, W_k, W_v = torch.randn(3, K, K)
    apart = steps.key_value_attention(q, h, W_k, W_v)
    close(steps.key_value_attention(q, h, W_k, W_v, everything), apart)
    close(steps.self_attention(h, W_q, W_k, W_v), steps.key_value_attention(h @ W_q.T, h, W_k, W_v))
    close(steps.multi_head_attention(h, W_q, W_k, W_v, one, 1), steps.self_attention(h, W_q, W_k, W_v))


def test_keys_and_values_written_out():
    """E7: y_t is a sum of v_i, an index of its own that the softmax runs over (E3), never of the queries."""
    q, h, W_k, W_v = torch.randn(B, T, K), torch.randn(B, S, D), torch.randn(K, D), torch.randn(7, D)
    visible = torch.rand(B, T, S) < 0.6
    visible[:, :, 0] = True
    y = steps.key_value_attention(q, h, W_k, W_v, visible)
    for b in range(B):
        for t in range(T):
            seen = [i for i in range(S) if visible[b, t, i]]
            a = softmax([q[b, t] @ (W_k @ h[b, i]) / math.sqrt(K) for i in seen])
            close(y[b, t], torch.as_tensor(sum(a[n] * (W_v @ h[b, i]) for n, i in enumerate(seen))))


def test_multi_head_written_out():
    """E4: each head scales by the root of its own width K = D / H, and has its own rows of the weights."""
    x, K = torch.randn(B, T, D), D // H
    W_q, W_k, W_v, W_o = torch.randn(4, D, D) / 2
    y = steps.multi_head_attention(x, W_q, W_k, W_v, W_o, H)
    for b in range(B):
        for t in range(T):
            heads = []
            for rows in (slice(h * K, (h + 1) * K) for h in range(H)):
                q = W_q[rows] @ x[b, t]
                a = softmax([q @ (W_k[rows] @ x[b, s]) / math.sqrt(K) for s in range(T)])
                heads.append(sum(a[s] * (W_v[rows] @ x[b, s]) for s in range(T)))
            close(y[b, t], W_o @ torch.cat(heads))


@pytest.mark.parametrize("masked", [False, True])
def test_multi_head_equals_torch(masked):
    theirs = nn.MultiheadAttention(D, H, bias=False, batch_first=True)
    x = torch.randn(B, T, D, requires_grad=True)
    visible = torch.ones(T, T, dtype=torch.bool).tril()[None] if masked else None
    W_qkv, W_o = theirs.in_proj_weight, theirs.out_proj.weight
    W_q, W_k, W_v = W_qkv.chunk(3)
    y = steps.multi_head_attention(x, W_q, W_k, W_v, W_o, H, visible)
    expected, _ = theirs(x, x, x, attn_mask=None if visible is None else ~visible[0], need_weights=False)
    close(y, expected)
    wanted, direction = [x, W_qkv, W_o], torch.randn(B, T, D)
    found, wanted_gradients = (torch.autograd.grad(out, wanted, direction) for out in (y, expected))
    for a, b in zip(found, wanted_gradients, strict=True):
        close(a, b)


def test_self_attention_does_not_know_the_order():
    """Outputs follow the order of the inputs; not with a causal mask, nor with positions."""
    x, order = torch.randn(B, T, D), torch.tensor([2, 0, 3, 1])
    W_q, W_k, W_v, W_o = weights = torch.randn(4, D, D) / 2
    causal = torch.ones(1, T, T, dtype=torch.bool).tril()
    close(
        steps.multi_head_attention(x[:, order], W_q, W_k, W_v, W_o, H),
        steps.multi_head_attention(x, W_q, W_k, W_v, W_o, H)[:, order],
    )
    close(steps.self_attention(x[:, order], *weights[:3]), steps.self_attention(x, *weights[:3])[:, order])
    places = torch.randn(T, D)
    for knows in (
        lambda x: steps.multi_head_attention(x, W_q, W_k, W_v, W_o, H, causal),
        lambda x: steps.multi_head_attention(x + places, W_q, W_k, W_v, W_o, H),
    ):
        assert (knows(x[:, order]) - knows(x)[:, order]).abs().max() > 1e-2


def test_where_nothing_is_present():
    """Zeros, and finite gradients; what is hidden may be anything finite."""
    e, present = torch.randn(B, S), torch.tensor([[True] * S, [False] * S, [True, False] * 2 + [True]])
    e[2, 1] = 1e300
    e.requires_grad_()
    a = masked_softmax(e, present)
    close(a.sum(1), torch.tensor([1.0, 0.0, 1.0]))
    assert a[~present].eq(0).all()
    (gradient,) = torch.autograd.grad(a.square().sum(), e)
    assert gradient.isfinite().all()
    assert gradient[~present].eq(0).all()
    x = torch.randn(B, T, D, requires_grad=True)
    W_q, W_k, W_v, W_o = torch.randn(4, D, D)
    y = steps.multi_head_attention(x, W_q, W_k, W_v, W_o, H, torch.zeros(1, 1, T, dtype=torch.bool))
    assert y.eq(0).all()
    assert torch.autograd.grad(y.sum(), x)[0].eq(0).all()


def test_gradients():
    def inputs(*shapes: tuple[int, ...]) -> list[Tensor]:
        return [torch.randn(shape, requires_grad=True) for shape in shapes]

    present = torch.tensor([[True, True, False], [False, False, False]])
    visible = torch.tensor([[True, False, True], [True, True, True]])[None]
    assert gradcheck(steps.mlp_scores, inputs((2, 3), (2, 3, 4), (2, 3), (2, 4), (2,)))
    assert gradcheck(steps.general_scores, inputs((2, 3), (2, 3, 4), (3, 4)))
    assert gradcheck(steps.scaled_dot_scores, inputs((2, 3), (2, 3, 3)))
    assert gradcheck(lambda e: masked_softmax(e, present), inputs((2, 3)))
    assert gradcheck(steps.weighted_sum, inputs((2, 3), (2, 3, 4)))
    assert gradcheck(steps.single_query_attention, inputs((2, 3), (2, 4, 3)))
    assert gradcheck(steps.batched_query_attention, inputs((2, 2, 3), (2, 4, 3)))
    assert gradcheck(
        lambda q, h, W_k, W_v: steps.key_value_attention(q, h, W_k, W_v, visible),
        inputs((2, 2, 3), (2, 3, 4), (3, 4), (2, 4)),
    )
    assert gradcheck(steps.self_attention, inputs((2, 3, 4), (3, 4), (3, 4), (2, 4)))
    assert gradcheck(
        lambda x, W_q, W_k, W_v, W_o: steps.multi_head_attention(x, W_q, W_k, W_v, W_o, 2),
        inputs((2, 3, 4), *[(4, 4)] * 4),
    )
