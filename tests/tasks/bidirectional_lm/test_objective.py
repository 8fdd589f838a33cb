"""The bidirectional language model of ELMo: two language models, neither of which sees what it predicts."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from foveal.data.text.text_windows import TokenizedText
from foveal.data.text.tokenizers import ByteTokenizer
from foveal.encoders.elmo import BidirectionalLayers
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.embedding import Embedding
from foveal.layers.mixers.recurrent_mixers import LSTM
from foveal.tasks.bidirectional_lm.model import BidirectionalLM
from foveal.tasks.bidirectional_lm.objective import BidirectionalLMObjective, PlainWindows

D, LAYERS, VOCABULARY, CONTEXT = 6, 2, 256, 16


class Opened(ByteTokenizer):
    """A byte tokenizer whose sources begin with `bos`."""

    add_bos = True


def model(residual: bool = False) -> BidirectionalLM:
    """In float64, and far from its first weights."""
    torch.manual_seed(0)
    there, back = ([Block(LSTM(D, D), residual=residual) for _ in range(LAYERS)] for _ in range(2))
    made = BidirectionalLM(BidirectionalLayers(Embedding(VOCABULARY + 3, D), there, back)).double().eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.uniform_(-0.7, 0.7)
    return made


def windows(tokenizer: ByteTokenizer, size: int = 300) -> PlainWindows:
    tokens = np.random.default_rng(0).integers(0, VOCABULARY, size).astype(np.uint8)
    return PlainWindows.for_evaluation(TokenizedText(tokens, tokenizer), 3, CONTEXT)


@pytest.mark.parametrize("residual", [False, True])
def test_neither_direction_sees_what_lies_ahead_of_it(residual: bool) -> None:
    """The gradients of each output reach the tokens up to its place alone, and in shorter rows, too."""
    made, lengths = model(residual), torch.tensor([7, 5])
    tokens = torch.randint(VOCABULARY, (2, 7))
    vectors = made.encoder.embedding(tokens).detach().requires_grad_()
    made.encoder.embedding.register_forward_hook(lambda *_: vectors)
    there, back = made.encoder(tokens, lengths)
    for layer in range(LAYERS + 1):
        for row, length in enumerate(lengths.tolist()):
            for place in range(length):
                alone = range(place, place + 1)
                seen = {"there": range(place + 1), "back": range(place, length)}
                for outputs, expected in ((there, seen["there"]), (back, seen["back"])):
                    loss = outputs[layer][row, place].sum()
                    (gradient,) = torch.autograd.grad(loss, vectors, retain_graph=True)
                    assert not gradient[1 - row].any()
                    places = gradient[row].ne(0).any(1).nonzero()[:, 0].tolist()
                    assert places == [*(expected if layer else alone)]


def torch_lstm(blocks: list[Any]) -> nn.LSTM:
    """Return torch's LSTM with the weights of ours, which has one bias."""
    theirs = nn.LSTM(D, D, LAYERS, batch_first=True).double()
    for layer, block in enumerate(blocks):
        cell = block.mixer.cell
        weights = cell.weight_input, cell.weight_hidden, cell.bias, torch.zeros_like(cell.bias)
        for name, weight in zip(("weight_ih", "weight_hh", "bias_ih", "bias_hh"), weights, strict=True):
            getattr(theirs, f"{name}_l{layer}").copy_(weight)
    return theirs


@torch.no_grad()
@pytest.mark.parametrize("tokenizer", [ByteTokenizer(), Opened()])
def test_the_loss_is_the_sum_of_two_language_models(tokenizer: ByteTokenizer) -> None:
    """Each a torch.nn.LSTM on each row alone, the second on the reversed row."""
    made, batch = model(), windows(tokenizer).batch(0, windows(tokenizer).per_epoch - 1)
    assert len(set(batch.lengths["source"].tolist())) > 1
    encoder, nats, count = made.encoder, 0.0, 0
    directions = [[pair.there for pair in encoder.pairs], [pair.back for pair in encoder.pairs]]
    for backward, blocks in enumerate(directions):
        lstm = torch_lstm(blocks)
        for row, length in zip(batch.columns["source"], batch.lengths["source"].tolist(), strict=True):
            read = row[:length].flip(0) if backward else row[:length]
            logits = made.projection(lstm(encoder.embedding(read[None, :-1]))[0][0])
            targets = read[1:].where(read[1:] < VOCABULARY, -100)
            nats += float(F.cross_entropy(logits, targets, reduction="sum"))
            count += int((targets >= 0).sum())
    result, carry = BidirectionalLMObjective(made, VOCABULARY)(batch, None)
    term = result.terms["loss"]
    assert float(term.sum) == pytest.approx(nats, rel=1e-9)
    assert term.weight == result.metrics["loss"][1] == count
    assert carry is None


def test_it_learns_a_pattern_in_both_directions() -> None:
    """In abcdabcd ... both neighbors of a token follow from it."""
    tokens = np.tile(np.arange(97, 101, dtype=np.uint8), 200)
    torch.manual_seed(0)
    there, back = [Block(LSTM(16, 16))], [Block(LSTM(16, 16))]
    made = BidirectionalLM(BidirectionalLayers(Embedding(VOCABULARY + 3, 16), there, back))
    objective = BidirectionalLMObjective(made, VOCABULARY)
    batches = PlainWindows.for_training(TokenizedText(tokens, ByteTokenizer()), 8, 2 * CONTEXT, seed=0)
    adam = torch.optim.Adam(made.parameters(), 3e-2)
    for step in range(100):
        term = objective(batches.batch(*divmod(step, batches.per_epoch)), None)[0].terms["loss"]
        adam.zero_grad()
        (term.sum / term.weight).backward()
        adam.step()
    assert float(term.sum.detach()) / term.weight < 0.3  # what ends a window is one of four tokens
