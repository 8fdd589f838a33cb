"""Masked language modelling: which tokens are hidden, and a loss of those alone."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from foveal.core.errors import UserError
from foveal.data.core.batching import ExampleBatch
from foveal.data.text.hidden_tokens import encode_with_masks
from foveal.data.text.masked_lm_batches import MaskedBatches
from foveal.data.text.special_tokens import SpecialTokens
from foveal.data.text.text_windows import TokenizedText
from foveal.data.text.tokenizers import BPETokenizer, ByteTokenizer, WordTokenizer
from foveal.encoders.text import TextEncoder
from foveal.heads.masked_lm import MaskedLMHead
from foveal.layers.blocks.feedforward import MLP
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.blocks.stack import Stack
from foveal.layers.embedding import Embedding
from foveal.layers.mixers.bidirectional import Bidirectional
from foveal.layers.mixers.full_attention import FullAttention
from foveal.layers.mixers.recurrent import Recurrent
from foveal.layers.mixers.recurrent_cells import LSTMCell
from foveal.models.encoder import EncoderWithHead
from foveal.objectives.masked_lm import MaskedLMObjective
from tests.support.recorded_calls import record_calls

D, CONTEXT = 16, 32
MARKS = SpecialTokens(256)


class Opened(ByteTokenizer):
    """A byte tokenizer whose sources begin with `bos`, as BERT's do."""

    add_bos = True


def text(size: int = 4000, tokenizer: ByteTokenizer | None = None) -> TokenizedText:
    tokens = np.random.default_rng(0).integers(0, 256, size).astype(np.uint8)
    return TokenizedText(tokens, tokenizer or ByteTokenizer())


def model(mixer: torch.nn.Module | None = None) -> EncoderWithHead:
    embedding = Embedding(MARKS.vocab_size, D)
    mixer = mixer or FullAttention(D, 2, rotary=True)
    stack = Stack([Block(mixer, MLP(D, 24), "layer", residual=True)])
    return EncoderWithHead(
        TextEncoder(embedding, stack, D), MaskedLMHead(D, MARKS.vocab_size, embedding.table)
    )


def task(preview_examples: ExampleBatch | None = None) -> MaskedLMObjective:
    """In float64, and far from its first weights."""
    grown = model().double()
    with torch.no_grad():
        for parameter in grown.parameters():
            parameter.uniform_(-0.5, 0.5)
    return MaskedLMObjective(grown.eval(), ByteTokenizer(), preview_examples)


def parts(batch: ExampleBatch) -> tuple[Tensor, Tensor, Tensor]:
    source, target, hidden = (batch.columns[name] for name in ("source", "target", "hidden"))
    return source, target, hidden.bool()


def equal(one: ExampleBatch, other: ExampleBatch) -> bool:
    return all(torch.equal(one.columns[name], other.columns[name]) for name in one.columns)


def test_a_pure_function_of_seed_epoch_and_index() -> None:
    found = MaskedBatches.for_training(text(), 4, CONTEXT, seed=3)
    first = found.batch(1, 2)
    found.batch(0, 0)
    assert equal(first, MaskedBatches.for_training(text(), 4, CONTEXT, seed=3).batch(1, 2))
    reseeded = MaskedBatches.for_training(text(), 4, CONTEXT, seed=4)
    for other in (found.batch(2, 2), found.batch(1, 3), reseeded.batch(1, 2)):
        assert not torch.equal(first.columns["hidden"], other.columns["hidden"])


@pytest.mark.parametrize("tokenizer", [ByteTokenizer(), Opened()])
def test_what_is_hidden(tokenizer: ByteTokenizer) -> None:
    """15 % of each window's tokens and no mark; of them 80 % masked, 10 % random, 10 % as they were."""
    found = MaskedBatches.for_training(text(60_000, tokenizer), 64, CONTEXT, seed=0)
    room = CONTEXT - 1 - tokenizer.add_bos
    counts = dict.fromkeys(("masked", "same", "other"), 0)
    for index in range(found.per_epoch):
        source, target, hidden = parts(found.batch(0, index))
        assert source.shape[1] == CONTEXT
        assert hidden.sum(1).tolist() == [round(0.15 * room)] * len(hidden)
        assert torch.equal(source[~hidden], target[~hidden])
        assert not (target[hidden] >= MARKS.size).any()
        assert target[:, -1].eq(MARKS.eos).all()
        assert target[:, 0].eq(MARKS.bos).all() == tokenizer.add_bos
        counts["masked"] += int(source[hidden].eq(MARKS.mask).sum())
        counts["same"] += int(source[hidden].eq(target[hidden]).sum())
        counts["other"] += int(hidden.sum())
    total = counts["other"]
    assert total > 7000
    assert counts["masked"] / total == pytest.approx(0.8, abs=0.02)
    assert counts["same"] / total == pytest.approx(0.1 + 0.1 / 256, abs=0.015)


def test_every_place_is_hidden_at_some_time() -> None:
    found = MaskedBatches.for_training(text(400), 8, CONTEXT, seed=0)
    seen = torch.stack([found.batch(epoch, 0).columns["hidden"].sum(0) for epoch in range(60)]).sum(0)
    assert (seen[:-1] > 0).all()
    assert seen[-1] == 0


def test_held_out_text_is_whole_and_the_same_each_time() -> None:
    """Rows of unequal length and none: every token but the last stands in one window."""
    whole = text(533)
    found = MaskedBatches.for_evaluation(whole, 5, CONTEXT)
    rows: list[list[list[int]]] = [[] for _ in range(5)]
    for index in range(found.per_epoch):
        batch = found.batch(0, index)
        assert equal(batch, found.batch(0, index))
        source, target, hidden = parts(batch)
        for row, length in enumerate(batch.lengths["source"].tolist()):
            assert target[row, length - 1] == MARKS.eos
            assert not target[row, length:].any()
            assert not source[row, length:].any()
            assert int(hidden[row].sum()) == (max(1, round(0.15 * (length - 1))) if length > 1 else 0)
            rows[row].append(target[row, : length - 1].tolist())
    assert [token for row in rows for part in row for token in part] == whole.tokens[:-1].tolist()
    assert found.per_epoch > 1


def test_no_room() -> None:
    with pytest.raises(UserError, match=r"data\.context_length=2 leaves no room"):
        MaskedBatches.for_training(text(), 4, 2, seed=0)


def test_the_loss_is_that_of_the_hidden_places() -> None:
    """Row by row, place by place, with every place projected; and nothing else is looked at."""
    found, batch = task(), MaskedBatches.for_evaluation(text(200), 3, CONTEXT).batch(0, 2)
    assert len(set(batch.lengths["source"].tolist())) > 1
    source, target, hidden = parts(batch)
    expected, head = [], found.model.head
    for row, length in enumerate(batch.lengths["source"].tolist()):
        every = torch.ones(1, length, dtype=torch.bool)
        features, _ = head(found.model.encoder(source[row : row + 1, :length])[0], every)
        chances = head.project(features).softmax(1)
        expected += [-chances[t, target[row, t]].log() for t in range(length) if hidden[row, t]]
    result, carry = found(batch, None)
    term = result.terms["loss"]
    torch.testing.assert_close(term.sum, torch.stack(expected).sum().to(term.sum.dtype), rtol=1e-6, atol=1e-6)
    assert term.weight == found.weights(batch)["loss"] == len(expected) == int(hidden.sum())
    assert result.metrics["loss"][1] == result.metrics["accuracy"][1] == len(expected)
    assert carry is None
    others = batch.columns | {"target": torch.where(hidden, target, 7)}
    again, _ = found(ExampleBatch(batch.rows, others, batch.lengths, batch.row_tokens), None)
    assert torch.equal(again.terms["loss"].sum, term.sum)


def test_only_hidden_places_are_projected(monkeypatch: pytest.MonkeyPatch) -> None:
    found, batch = task(), MaskedBatches.for_training(text(), 4, CONTEXT, seed=0).batch(0, 0)
    projected = record_calls(monkeypatch, found.model.head, "project")
    found(batch, None)
    sizes = [len(x) for (x,) in projected]
    assert sizes == [int(batch.columns["hidden"].sum())]
    assert sizes[0] < batch.columns["source"].numel() / 5


def test_a_preview_fills_the_gaps() -> None:
    """Of the letters that were there, only the hidden ones become the model's."""
    tokens = np.frombuffer(b"the cat sat on the mat, and the rat ran", np.uint8)
    shown = MaskedBatches.for_evaluation(TokenizedText(tokens, ByteTokenizer()), 1, 48).batch(0, 0)
    found = task(shown)
    with torch.no_grad():
        found.model.head.projection.weight.zero_()
        found.model.head.projection.bias.zero_()[ord("x")] = 1
    told = found.preview(0)
    assert told is not None
    gaps, filled = told.split(" -> ")
    hidden = int(shown.columns["hidden"].sum())
    assert filled.count("x") == gaps.count("_") == hidden
    assert task().preview(0) is None


def test_it_learns_what_stands_between() -> None:
    """In abcdabcd ... what is hidden follows from its neighbours; the first loss is that of chance."""
    tokens = np.tile(np.arange(97, 101, dtype=np.uint8), 200)
    both_ways = Bidirectional(Recurrent(LSTMCell(D, D // 2)), Recurrent(LSTMCell(D, D // 2)))
    found = MaskedLMObjective(model(both_ways), ByteTokenizer())
    batches = MaskedBatches.for_training(TokenizedText(tokens, ByteTokenizer()), 16, CONTEXT, seed=0)
    adam = torch.optim.Adam(found.model.parameters(), 1e-2)
    losses = []
    for step in range(100):
        result, _ = found(batches.batch(*divmod(step, batches.per_epoch)), None)
        term = result.terms["loss"]
        losses.append(float(term.sum.detach()) / term.weight)
        adam.zero_grad()
        (term.sum / term.weight).backward()
        adam.step()
    right, total = result.metrics["accuracy"]
    assert losses[0] == pytest.approx(math.log(MARKS.vocab_size), abs=0.1)
    assert right / total > 0.9


def test_gaps_are_where_training_has_them() -> None:
    """With the space before a word if that is in its token, so the tokens around are those of the text."""
    whole = "the cat sat on the mat"
    pairs = BPETokenizer.train([f"{whole} " * 20], 290)
    tokens = pairs.encode(whole)
    at = [pairs.decode([token]) for token in tokens].index(" cat")
    expected = [SpecialTokens(pairs.size).mask if i == at else token for i, token in enumerate(tokens)]
    assert encode_with_masks("the [MASK] sat on the mat", pairs).tolist() == [
        *expected,
        SpecialTokens(pairs.size).eos,
    ]
    first, last, gap, end = MARKS.bos, MARKS.eos, MARKS.mask, ord("a")
    assert encode_with_masks("a [MASK]", Opened()).tolist() == [first, end, ord(" "), gap, last]
    assert encode_with_masks("[MASK][MASK]a", ByteTokenizer()).tolist() == [gap, gap, end, last]
    words = WordTokenizer(["red", "cat"])
    assert encode_with_masks("red [MASK] cat", words).tolist() == [
        1,
        SpecialTokens(2).mask,
        0,
        SpecialTokens(2).eos,
    ]
