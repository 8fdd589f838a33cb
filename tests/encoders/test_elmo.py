"""ELMo's mixture of the layers of a bidirectional language model."""

import torch

from foveal.encoders.elmo import BidirectionalLayers, ElmoEncoder, ScalarMix
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.embedding import Embedding
from foveal.layers.mixers.recurrent_mixers import LSTM

D = 4


def test_the_mixture_is_the_equation() -> None:
    """gamma sum_j softmax(s)_j h_j, of the layers of both directions side by side."""
    torch.manual_seed(0)
    there, back = ([Block(LSTM(D, D)) for _ in range(2)] for _ in range(2))
    encoder = ElmoEncoder(BidirectionalLayers(Embedding(9, D), there, back))
    with torch.no_grad():
        encoder.mix.scores.copy_(torch.tensor([0.3, -1.0, 2.0]))
        encoder.mix.gamma.fill_(1.5)
    tokens, lengths = torch.randint(9, (2, 5)), torch.tensor([5, 3])
    memory, _ = encoder(tokens, lengths)
    shares = torch.tensor([0.3, -1.0, 2.0]).exp()
    expected = torch.zeros(2, 5, 2 * D)
    for share, one, other in zip(shares / shares.sum(), *encoder.layers(tokens, lengths), strict=True):
        expected += 1.5 * share * torch.cat([one, other], 2)
    torch.testing.assert_close(memory.vectors[0], expected[0])
    torch.testing.assert_close(memory.vectors[1, :3], expected[1, :3])
    assert not memory.vectors[1, 3:].any()
    word_vectors = encoder.layers.embedding(tokens)
    first = encoder.layers(tokens, lengths)[1][0]
    torch.testing.assert_close(first[0], word_vectors[0])


def test_the_mixture_starts_as_the_mean() -> None:
    layers = [torch.randn(2, 3, D) for _ in range(3)]
    torch.testing.assert_close(ScalarMix(3)(layers), torch.stack(layers).mean(0))
