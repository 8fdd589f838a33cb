"""XLNet's two streams: what each vector sees, and the same logits as Hugging Face's model."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from foveal.tasks.permutation_lm.model import PermutationLM, TwoStreamBlock
from foveal.tasks.permutation_lm.relative_attention import RelativeAttention, relative_attention

VOCABULARY, D, LAYERS, HEADS, B, T = 11, 8, 3, 2, 2, 7
TOKENS = torch.tensor([[3, 1, 4, 1, 5, 9, 2], [6, 5, 3, 5, 8, 9, 7]])
EVERYWHERE = torch.arange(T).expand(B, -1)
RANKS = torch.tensor([[4, 0, 2, 6, 1, 5, 3], [0, 6, 1, 5, 2, 4, 3]])
"""An order of all tokens for each row."""


def model(segments: bool = False) -> PermutationLM:
    """In float64, and far from its first weights."""
    torch.manual_seed(0)
    made = PermutationLM(VOCABULARY, D, LAYERS, HEADS, 12, segments).double().eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.uniform_(-0.7, 0.7)
    return made


def with_embeddings(made: PermutationLM) -> Tensor:
    """Let the model read an input of embeddings, whose gradients tell what is seen. Return the input."""
    vectors = made.embedding(TOKENS).detach().requires_grad_()
    made.embedding.register_forward_hook(lambda *_: vectors)
    return vectors


def seen_by_prediction(made: PermutationLM, row: int, place: int) -> list[int]:
    """The positions whose tokens have an effect on the prediction at a place."""
    vectors = with_embeddings(made)
    logits = made(TOKENS, RANKS, EVERYWHERE)
    (gradient,) = torch.autograd.grad(logits[row, place].square().sum(), vectors)
    assert not gradient[1 - row].any()
    return gradient[row].ne(0).any(1).nonzero()[:, 0].tolist()


def test_a_prediction_depends_on_the_tokens_before_it_in_the_order_and_on_no_other() -> None:
    for row in range(B):
        for place in range(T):
            earlier = [other for other in range(T) if RANKS[row, other] < RANKS[row, place]]
            assert seen_by_prediction(model(), row, place) == earlier


@torch.no_grad()
def test_the_content_stream_sees_its_own_token_and_the_query_stream_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    streams: list[list[bool]] = []
    original = TwoStreamBlock.forward

    def recorded(self: TwoStreamBlock, x: Tensor, content: Tensor, sight: Any) -> Tensor:
        own = sight.visible.gather(2, sight.places[:, :, None])
        streams.append([bool(own.all()), bool(own.any())])
        return original(self, x, content, sight)

    monkeypatch.setattr(TwoStreamBlock, "forward", recorded)
    model()(TOKENS, RANKS, EVERYWHERE)
    query, content = [False, False], [True, True]
    assert streams == [query, content, query, content, query]


@torch.no_grad()
def test_the_order_of_the_text_makes_a_causal_language_model() -> None:
    """Each prediction is that from the beginning of the text alone, whatever follows."""
    made = model()
    whole = made(TOKENS, EVERYWHERE, EVERYWHERE)
    for size in range(1, T + 1):
        beginning = made(TOKENS[:, :size], EVERYWHERE[:, :size], EVERYWHERE[:, size - 1 : size])
        torch.testing.assert_close(whole[:, size - 1 : size], beginning)


@torch.no_grad()
def test_tokens_of_one_rank_see_each_other_but_do_not_predict_each_other() -> None:
    """The gaps of a text are predicted from all other tokens; their own tokens do not count."""
    made, gaps = model(), torch.tensor([[1, 5], [0, 6]])
    ranks = torch.zeros_like(TOKENS).scatter(1, gaps, 1)
    logits = made(TOKENS, ranks, gaps)
    others = TOKENS.scatter(1, gaps, 0)
    assert torch.equal(made(others, ranks, gaps), logits)
    alone = made(others, ranks, gaps[:, 1:])
    torch.testing.assert_close(alone, logits[:, 1:])
    for place in (2, 3, 4):
        changed = TOKENS.clone()
        changed[:, place] = 0
        assert (made(changed, ranks, gaps) != logits).any(2).all()


@torch.no_grad()
def test_padding_changes_nothing() -> None:
    made, lengths = model(), torch.tensor([T, 4])
    ranks = torch.tensor([RANKS[0].tolist(), [0, 2, 1, 3, 0, 0, 0]])
    padded = made(TOKENS, ranks, EVERYWHERE, lengths)
    torch.testing.assert_close(padded[:1], made(TOKENS[:1], ranks[:1], EVERYWHERE[:1]))
    alone = made(TOKENS[1:, :4], ranks[1:, :4], EVERYWHERE[1:, :4])
    torch.testing.assert_close(padded[1:, :4], alone)


@torch.no_grad()
def test_other_segments_change_what_is_read() -> None:
    made, segments = model(segments=True), (EVERYWHERE > 3).long()
    plain = made(TOKENS, RANKS, EVERYWHERE)
    torch.testing.assert_close(made(TOKENS, RANKS, EVERYWHERE, segments=EVERYWHERE * 0), plain)
    assert not torch.allclose(made(TOKENS, RANKS, EVERYWHERE, segments=segments), plain)


def test_the_equation_pair_by_pair() -> None:
    """Against a loop over queries, heads and positions, with a query that sees nothing; and its gradients."""
    torch.manual_seed(0)
    K, N = 3, 2
    firsts = (B, N), (B, T), (B, T), (2 * T - 1,), (), ()
    inputs = [torch.randn(*first, HEADS, K, dtype=torch.float64, requires_grad=True) for first in firsts]
    q, k, v, r, u, w = inputs
    places, visible = torch.tensor([[2, 6], [0, 3]]), torch.rand(B, N, T) < 0.5
    visible[1, 0] = False
    y = relative_attention(q, k, v, r, u, w, places, visible)
    for row, query, head in torch.cartesian_prod(*map(torch.arange, (B, N, HEADS))).tolist():
        at = int(places[row, query])
        seen = visible[row, query].nonzero()[:, 0].tolist()
        own = q[row, query, head]
        scores = [(own + u[head]) @ k[row, j, head] + (own + w[head]) @ r[at - j + T - 1, head] for j in seen]
        expected = torch.zeros_like(own)
        if seen:
            expected = (torch.stack(scores) / K**0.5).softmax(0) @ v[row, seen, head]
        torch.testing.assert_close(y[row, query, head], expected)
    assert torch.autograd.gradcheck(relative_attention, (*inputs, places, visible))


def in_float64(theirs: Any) -> Any:
    """Return their model with distances in float64: by itself it computes them in float32."""
    model = theirs.double().eval().transformer

    def distances(qlen: int, klen: int, bsz: int, device: torch.device) -> Tensor:
        exponents = torch.arange(0, D, 2, dtype=torch.float64) / D
        return model.positional_embedding(torch.arange(klen, -qlen, -1).double(), 10000.0**-exponents, bsz)

    model.relative_positional_encoding = distances
    return theirs


def from_hugging_face(made: PermutationLM, theirs: nn.Module) -> None:
    """Fill our model with the weights of theirs. Their sines come before their cosines, ours alternate."""
    alternating = torch.arange(D).view(2, D // 2).T.flatten()
    flat = lambda weight: weight.flatten(1).T  # noqa: E731
    transformer: Any = theirs.transformer
    made.embedding.table.copy_(transformer.word_embedding.weight)
    made.first_query.copy_(transformer.mask_emb[0, 0])
    made.projection.bias.copy_(theirs.lm_loss.bias)  # type: ignore[union-attr, arg-type]
    for block, layer in zip(made.blocks, transformer.layer, strict=True):
        attention: RelativeAttention = block.attention  # type: ignore[assignment]
        peer = layer.rel_attn
        for ours, weight in ((attention.query, peer.q), (attention.key, peer.k), (attention.value, peer.v)):
            ours.weight.copy_(flat(weight))
        attention.distance.weight.copy_(flat(peer.r[alternating]))
        attention.output.weight.copy_(peer.o.flatten(1))
        attention.content_bias.copy_(peer.r_w_bias)
        attention.position_bias.copy_(peer.r_r_bias)
        assert attention.segment_bias is not None
        assert attention.segment_keys is not None
        attention.segment_bias.copy_(peer.r_s_bias)
        attention.segment_keys.copy_(peer.seg_embed)
        feedforward: Any = block.feedforward
        feedforward.expand.load_state_dict(layer.ff.layer_1.state_dict())
        feedforward.contract.load_state_dict(layer.ff.layer_2.state_dict())
        for norm, other in (("attention_norm", peer.layer_norm), ("feedforward_norm", layer.ff.layer_norm)):
            getattr(block, norm).gain.copy_(other.weight)
            getattr(block, norm).bias.copy_(other.bias)


@torch.no_grad()
@pytest.mark.parametrize("two_segments", [False, True])
def test_logits_are_those_of_hugging_face(two_segments: bool) -> None:
    """For the last tokens of an order, with and without segments. A first token that sees none is not among
    them: there, their attention spreads over all tokens."""
    transformers = pytest.importorskip("transformers")
    sizes = {"d_model": D, "n_layer": LAYERS, "n_head": HEADS, "d_inner": 12, "vocab_size": VOCABULARY}
    theirs = in_float64(transformers.XLNetLMHeadModel(transformers.XLNetConfig(**sizes)))
    for parameter in theirs.parameters():
        parameter.uniform_(-0.7, 0.7)
    made = model(segments=True)
    from_hugging_face(made, theirs)
    assert sum(each.numel() for each in made.parameters()) == sum(
        each.numel() for each in theirs.parameters()
    )
    places = RANKS.argsort(1)[:, 2:]
    hidden_from = (RANKS[:, None] >= RANKS[:, :, None]).double()
    mapping = nn.functional.one_hot(places, T).double()
    segments = (EVERYWHERE > 3).long() if two_segments else None
    expected = theirs(
        TOKENS, perm_mask=hidden_from, target_mapping=mapping, token_type_ids=segments, use_mems=False
    ).logits
    torch.testing.assert_close(made(TOKENS, RANKS, places, segments=segments), expected, rtol=1e-9, atol=1e-9)
