"""Models of other libraries give outputs and attention weights as they are: torch's, BERT, GPT-2."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from foveal import UserError, capture

B, T, S, D, H = 2, 4, 6, 16, 4
CONTEXTS = {"gradients": nullcontext, "no_grad": torch.no_grad, "inference": torch.inference_mode}
NEAR: dict[str, Any] = {"rtol": 0, "atol": 1e-6}


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def written_out(attention, q, k, mask=None):
    """softmax(q k^T / sqrt(K) + mask) from the weights of an `nn.MultiheadAttention`."""
    weights = attention.in_proj_weight.chunk(3)
    biases = attention.in_proj_bias.chunk(3)
    q = (q @ weights[0].mT + biases[0]).unflatten(2, (H, -1)).transpose(1, 2)
    k = (k @ weights[1].mT + biases[1]).unflatten(2, (H, -1)).transpose(1, 2)
    scores = q @ k.mT / (D // H) ** 0.5
    return (scores if mask is None else scores + mask).softmax(3)


@pytest.mark.parametrize("context", list(CONTEXTS))
@pytest.mark.parametrize("returned", [True, False])
def test_multihead_attention(context, returned):
    """With and without weights that it returns, and with a mask of keys, which have weights of exactly 0."""
    layer, x = nn.MultiheadAttention(D, H, batch_first=True).eval(), torch.randn(B, T, D)
    memory, hidden = torch.randn(B, S, D), torch.zeros(B, S, dtype=torch.bool)
    hidden[0, -2:] = True
    with CONTEXTS[context](), capture(layer, "*/weights") as record:
        _, shown = layer(x, memory, memory, hidden, need_weights=returned, average_attn_weights=False)
    weights = record["/weights"][0]
    mask = torch.zeros(B, 1, 1, S).masked_fill(hidden[:, None, None], -torch.inf)
    torch.testing.assert_close(weights, written_out(layer, x, memory, mask), **NEAR)
    assert weights[0, ..., -2:].eq(0).all()
    torch.testing.assert_close(weights.sum(3), torch.ones(B, H, T))
    if returned:
        torch.testing.assert_close(weights, shown)
    assert record["/weights"].dims == ("batch", "head", "query", "key")


@pytest.mark.parametrize("context", list(CONTEXTS))
def test_encoder_layer(context):
    """Its fast path, which calls none of its modules, is off inside the block, and on again after it."""
    layer, x = nn.TransformerEncoderLayer(D, H, 2 * D, batch_first=True).eval(), torch.randn(B, T, D)
    causal = nn.Transformer.generate_square_subsequent_mask(T)
    with CONTEXTS[context]():
        expected = layer(x, src_mask=causal, is_causal=True)
        with capture(layer, "*/weights", "linear1/output") as record:
            y = layer(x, src_mask=causal, is_causal=True)
    torch.testing.assert_close(y, expected, **NEAR)
    weights = record["self_attn/weights"]
    torch.testing.assert_close(weights[0], written_out(layer.self_attn, x, x, causal), **NEAR)
    assert weights[0].triu(1).eq(0).all()
    assert weights.exactness.startswith("recomputed (largest deviation ")
    assert record["linear1/output"][0].shape == (B, T, 2 * D)


def test_dropout_and_the_whole_transformer():
    model = nn.Transformer(D, H, 1, 1, 2 * D, batch_first=True).eval()
    source, target = torch.randn(B, S, D), torch.randn(B, T, D)
    with torch.no_grad(), capture(model, "*/weights", "*self_attn/output") as record:
        model(source, target)
        model.train()
        model(source, target)
    assert [(name, value.shapes) for name, value in record.items() if "weights" in name] == [
        ("encoder.layers.0.self_attn/weights", [(B, H, S, S)] * 2),
        ("decoder.layers.0.self_attn/weights", [(B, H, T, T)] * 2),
        ("decoder.layers.0.multihead_attn/weights", [(B, H, T, S)] * 2),
    ]
    evaluated, trained = record["encoder.layers.0.self_attn/weights"]
    torch.testing.assert_close(trained, evaluated, **NEAR)  # of the first layer, before any dropout
    torch.testing.assert_close(
        evaluated, written_out(model.encoder.layers[0].self_attn, source, source), **NEAR
    )


def test_outputs_of_any_shape_and_their_gradients():
    class Pairs(nn.Module):
        def forward(self, x, kind):
            return {"tuple": (x * 2, x), "dict": {"a": x * 2}, "none": None, "value": 3}[kind]

    model = nn.ModuleDict({"pairs": Pairs()})
    x = torch.ones(2, requires_grad=True)
    with capture(model, "*/output", "grad:*/output") as record:
        for kind in ("tuple", "dict", "none", "value"):
            model["pairs"](x, kind)
        (model["pairs"](x, "tuple")[0] * 3).sum().backward()
    assert record["pairs/output"].shapes == [(2,)] * 3
    assert record["grad:pairs/output"][2].tolist() == [3, 3]


@pytest.fixture(scope="module")
def hugging_face():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"vocab_size": 30, "bos_token_id": 0, "eos_token_id": 0}
    bert = {"hidden_size": D, "num_hidden_layers": 2, "num_attention_heads": H, "intermediate_size": 32}
    gpt = {"n_embd": D, "n_layer": 2, "n_head": H, "scale_attn_by_inverse_layer_idx": True}

    def make(kind, implementation):
        if kind == "bert":
            config = transformers.BertConfig(**bert, vocab_size=30, attn_implementation=implementation)
            return transformers.BertModel(config).eval()
        config = transformers.GPT2Config(**gpt, **sizes, attn_implementation=implementation)
        return transformers.GPT2LMHeadModel(config).eval()

    return SimpleNamespace(make=make)


PATHS = {"bert": "encoder.layer.{}.attention.self/weights", "gpt-2": "transformer.h.{}.attn/weights"}


@pytest.mark.parametrize("context", list(CONTEXTS))
@pytest.mark.parametrize("kind", list(PATHS))
def test_hugging_face(hugging_face, kind, context):
    """Weights as those of the same model with attention written out, whatever its mask and scale."""
    model, eager = hugging_face.make(kind, "sdpa"), hugging_face.make(kind, "eager")
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    eager.load_state_dict(model.state_dict())
    tokens, mask = torch.randint(30, (B, S)), torch.ones(B, S, dtype=torch.long)
    mask[0, :2] = 0
    with CONTEXTS[context](), capture(model, "*/weights", "*/output") as record:
        result = model(tokens, attention_mask=mask)
        expected = eager(tokens, attention_mask=mask, output_attentions=True)
    # A padded query of GPT-2 sees no key: torch's kernel gives zeros, the written-out one equal weights.
    seen_rows = mask.bool() if kind == "gpt-2" else torch.ones(B, S, dtype=torch.bool)
    torch.testing.assert_close(result[0][seen_rows], expected[0][seen_rows], rtol=1e-4, atol=1e-4)
    for layer, weights in enumerate(expected.attentions):
        captured = record[PATHS[kind].format(layer)][0]
        near = (captured - weights).abs().amax((1, 3))
        assert near[seen_rows].max() < 1e-5
        assert captured[0, :, 2:, :2].eq(0).all(), "hidden keys"
        assert not captured.triu(1).any() or kind == "bert"
    assert record["/output"][0].shape == result[0].shape


@pytest.mark.parametrize("context", list(CONTEXTS))
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("kind", list(PATHS))
def test_attention_that_is_written_out(hugging_face, kind, training, context):
    """Hugging Face's eager attention: the weights that it returns, before dropout."""
    model = hugging_face.make(kind, "eager").train(training)
    tokens, mask = torch.randint(30, (B, S)), torch.ones(B, S, dtype=torch.long)
    mask[0, :2] = 0
    with CONTEXTS[context](), capture(model, "*/weights") as record:
        shown = model(tokens, attention_mask=mask, output_attentions=True).attentions
    first = record[PATHS[kind].format(0)]
    assert first.exactness == "exact"
    kept = shown[0] != 0  # dropout sets some to 0, and scales the others
    scale = 0.9 if training else 1.0
    torch.testing.assert_close(first[0][kept], scale * shown[0][kept])
    torch.testing.assert_close(first[0].sum(3), torch.ones(B, H, S))
    assert len(record) == 2


@pytest.mark.parametrize("kind", list(PATHS))
def test_dropout_of_hugging_face(hugging_face, kind):
    """In training, dropout leaves the weights of the first layer as in evaluation, apart from its input's."""
    model = hugging_face.make(kind, "sdpa")
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0  # of inputs and outputs, while that of the weights is on
    tokens, mask = torch.randint(30, (B, S)), torch.ones(B, S, dtype=torch.long)
    mask[0, -2:] = 0
    with capture(model, "*/weights") as record:
        model(tokens, attention_mask=mask)
        model.train()
        model(tokens, attention_mask=mask)
    evaluated, trained = record[PATHS[kind].format(0)]
    torch.testing.assert_close(trained, evaluated, **NEAR)
    assert trained[0, ..., -2:].eq(0).all() or kind == "gpt-2"


class Attending(nn.Module):
    """Calls torch's attention as any model may."""

    def forward(self, q, k, v, **options):
        return nn.functional.scaled_dot_product_attention(q, k, v, **options)


MASKS: dict[str, Any] = {
    "all": {},
    "causal": {"is_causal": True},
    "keys": {"attn_mask": torch.arange(S)[None, None, None] < torch.tensor([S, 3])[:, None, None, None]},
    "pairs": {"attn_mask": torch.ones(T, S, dtype=torch.bool).tril(1)},
    "bias": {"attn_mask": torch.linspace(-2, 2, H * T * S).view(1, H, T, S)},
    "scale": {"scale": 0.3},
    "grouped": {"enable_gqa": True},
    "grouped and causal": {"enable_gqa": True, "is_causal": True},
    "three axes": {},
}


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("context", list(CONTEXTS))
@pytest.mark.parametrize("case", list(MASKS))
def test_with_the_identity_as_values_the_outputs_are_the_weights(case, context, dropout):
    """Whichever operation the call becomes: with gradients, without, in inference mode, with dropout."""
    model, heads = Attending(), 2 if "grouped" in case else H
    q, k = torch.randn(B, H, T, S), torch.randn(B, heads, S, S)
    v = torch.eye(S).expand(B, heads, S, S).contiguous()
    if case == "three axes":
        q, k, v = q[0], k[0], v[0]
    q.requires_grad_(context == "gradients")
    with CONTEXTS[context](), capture(model, "*/weights") as record:
        y = model(q, k, v, dropout_p=dropout, **MASKS[case])
    weights = record["/weights"][0]
    expected = y.detach() if case != "three axes" else y.detach()[None]
    if dropout:  # twice as large, or 0
        kept = expected != 0
        torch.testing.assert_close(2 * weights[kept], expected[kept], **NEAR)
        torch.testing.assert_close(weights.sum(3), torch.ones(weights.shape[:3]))
    else:
        torch.testing.assert_close(weights, expected, **NEAR)


def test_another_softmax_is_no_attention():
    class Classifier(nn.Module):
        def forward(self, x):
            return x.softmax(1), x[0].softmax(-1), x[0, 0].softmax(-1)

    with (
        pytest.raises(UserError, match=r"attn_implementation='sdpa' or 'eager'"),
        capture(model := Classifier(), "*/weights"),
    ):
        model(torch.randn(2, 3, 4, 5))
