"""Words to a memory: the laws of encoders, and padding that holds other words."""

import pytest
import torch

from foveal.encoders.words import WordEncoder
from foveal.laws import encoder_laws as laws
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.blocks.stack import Stack
from foveal.layers.mixers.bidirectional import Bidirectional
from foveal.layers.mixers.recurrent import Recurrent
from foveal.layers.mixers.recurrent_cells import LSTMCell
from foveal.layers.norm import LayerNorm
from foveal.layers.word_vectors import WordVectors

D, S, FORMS, IDS = 8, 7, 3, 6
LENGTHS = [S, 3, 0, 1]


def make(dropout: float = 0.0) -> WordEncoder:
    torch.manual_seed(0)
    vectors = WordVectors(FORMS, [1] * (IDS - 1), IDS, 5, 4, 6)
    there, back = (Recurrent(LSTMCell(vectors.width, D // 2)) for _ in range(2))
    mixer = Bidirectional(there, back)
    norm = LayerNorm(D)  # whose bias makes something of zeros
    torch.nn.init.normal_(norm.bias)
    return WordEncoder(vectors, Stack([Block(mixer)]), D, norm, dropout).double().eval()


def source() -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randint(IDS, (len(LENGTHS), S, FORMS + 4))


def test_laws() -> None:
    encoder, words = make(), source()
    memory = laws.shape(encoder, words, LENGTHS, LENGTHS)
    assert memory.segments[0].kind == "tokens"
    laws.batch(encoder, words, LENGTHS)
    laws.every_parameter_learns(encoder, words, LENGTHS)


@pytest.mark.parametrize("other", [0, 1, IDS - 1])
def test_words_in_the_padding_change_nothing(other: int) -> None:
    encoder, words, lengths = make(), source(), torch.tensor(LENGTHS)
    found = []
    for padded in (words, words.clone()):
        if padded is not words:
            for row, length in enumerate(LENGTHS):
                padded[row, length:] = other
        memory, _ = encoder(padded, lengths)
        loss = (memory.vectors**2).sum() + (memory.summary**3).sum()
        found.append([memory.vectors, memory.summary, *torch.autograd.grad(loss, [*encoder.parameters()])])
    assert all(map(torch.equal, *found))


def test_words_are_dropped_in_training_only() -> None:
    encoder, words, lengths = make(dropout=0.5), source(), torch.tensor(LENGTHS)
    assert encoder(words, lengths)[0].vectors.equal(make()(words, lengths)[0].vectors)
    assert not encoder.train()(words, lengths)[0].vectors.equal(make()(words, lengths)[0].vectors)
