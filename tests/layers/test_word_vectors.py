"""Vectors of words against torch's modules, word by word; and forms that training makes unknown."""

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from foveal.layers.word_vectors import WordVectors

COUNTS = [8, 1, 1, 100]
FORMS, LONGEST = 3, 5


def make(word_dropout: float = 0.0) -> WordVectors:
    torch.manual_seed(0)
    return WordVectors(FORMS, COUNTS, 7, 6, 4, 9, word_dropout).double().eval()


def words(*shape: int) -> Tensor:
    """Words of one to five characters, with unknown forms among them."""
    torch.manual_seed(1)
    forms = torch.randint(1 + len(COUNTS), (*shape, FORMS))
    characters = torch.randint(1, 7, (*shape, LONGEST))
    lengths = torch.randint(1, LONGEST + 1, (*shape, 1))
    return torch.cat([forms, characters.where(torch.arange(LONGEST) < lengths, 0)], -1)


def test_as_torch_computes_each_word_alone() -> None:
    vectors, x = make(), words(2, 6)
    nn.init.normal_(vectors.convolution.bias)  # type: ignore[arg-type]
    bag = nn.EmbeddingBag.from_pretrained(vectors.table.detach(), mode="sum")
    for row, found in zip(x.flatten(0, 1), vectors(x).flatten(0, 1), strict=True):
        characters = [0, *(int(character) for character in row[FORMS:] if character), 0]
        spelled = vectors.characters.table[characters].T[None]
        y = nn.functional.conv1d(spelled, vectors.convolution.weight, vectors.convolution.bias)
        expected = torch.cat([bag(row[None, :FORMS])[0], y[0].relu().amax(1)])
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_places_after_all_words_change_nothing() -> None:
    vectors, x = make(), words(2, 3)
    longer = nn.functional.pad(x, (0, 9))
    torch.testing.assert_close(vectors(longer), vectors(x), rtol=0, atol=0)


def test_a_word_without_characters_has_none_to_describe_it() -> None:
    vectors, x = make(), words(1, 2)
    x[:, :, FORMS:] = 0
    assert vectors(x)[:, :, 6:].eq(0).all()
    assert vectors(x)[:, :, :6].ne(0).any()


def test_gradients_against_finite_differences() -> None:
    vectors, x = make(), words(2, 3)
    names, values = zip(*vectors.named_parameters(), strict=True)

    def f(*parameters: Tensor) -> Tensor:
        result: Tensor = functional_call(vectors, dict(zip(names, parameters, strict=True)), x)
        return result

    assert torch.autograd.gradcheck(f, tuple(value.detach().requires_grad_() for value in values))


@pytest.mark.parametrize("form", range(1, 1 + len(COUNTS)))
def test_the_rarer_a_form_the_more_often_it_is_unknown(form: int) -> None:
    vectors = make(word_dropout=2.0).train()
    with torch.no_grad():
        vectors.table.copy_(torch.arange(1.0 + len(COUNTS))[:, None].expand(-1, 6))
    seen = vectors.form_vectors(torch.full((1, 20_000, 1), form))[0, :, 0]
    assert set(seen.tolist()) == {0.0, float(form)}
    assert abs(seen.eq(0).double().mean() - 2 / (2 + COUNTS[form - 1])) < 0.02


def test_what_is_unknown_depends_on_the_seed_and_on_nothing_else() -> None:
    vectors, x = make(word_dropout=5.0), words(3, 4)
    assert vectors(x).equal(vectors(x))
    vectors.train()
    found = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        found.append(vectors(x))
    assert found[0].equal(found[1])
    assert not found[0].equal(found[2])
    assert vectors.state_dict().keys() == dict(vectors.named_parameters()).keys()
