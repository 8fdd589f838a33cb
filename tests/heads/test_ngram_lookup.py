"""A language model with an n-gram lookup: read in parts as read at once, and never from the token itself."""

import pytest
import torch
from torch import Tensor

from foveal.core.state import select_rows
from foveal.heads.decoder_lm import DecoderLM
from foveal.layers.ngram_lookup import NgramLookup, training_inputs
from foveal.models.decoder import language_model
from foveal.ops.ngram_lookup import ngram_followers_reference
from foveal.tasks.config import from_tables

V = 5


def model(text: Tensor | None = None) -> DecoderLM:
    """An LSTM that remembers a text."""
    table = {"mixers": "lstm", "width": 16, "layers": 1, "embedding_width": 8, "ngram_lookup": 6}
    made = language_model(from_tables({"model": table}).model, V, 64).eval()
    lookup(made).store_text(torch.randint(V, (200,)) if text is None else text)
    return made


def lookup(head: DecoderLM) -> NgramLookup:
    assert head.lookup is not None
    return head.lookup


@pytest.mark.parametrize("sizes", [(30,), (1,) * 30, (7, 1, 22)])
@pytest.mark.parametrize("inputs", ["tokens", "inputs with followers"])
@torch.no_grad()
def test_parts_equal_the_whole(sizes: tuple[int, ...], inputs: str) -> None:
    head, tokens = model(), torch.randint(V, (3, 30))
    read = torch.stack([lookup(head).held_out_inputs(row) for row in tokens])
    expected = head(read)[0]
    state, features = head.init_state(None, 3), list[Tensor]()
    for part in (tokens if inputs == "tokens" else read).split(sizes, 1):
        out, state, _ = head(part, state)
        features.append(out)
    torch.testing.assert_close(torch.cat(features, 1), expected)


@torch.no_grad()
def test_rows_of_different_lengths_go_on_as_if_alone() -> None:
    head, tokens = model(), torch.randint(V, (3, 12))
    lengths, more = torch.tensor([12, 5, 1]), torch.randint(V, (3, 8))
    _, state, _ = head(tokens, head.init_state(None, 3), lengths)
    together = head(more, state)[0]
    for row, length in enumerate(lengths.tolist()):
        _, state, _ = head(tokens[row : row + 1, :length], head.init_state(None, 1))
        torch.testing.assert_close(together[row : row + 1], head(more[row : row + 1], state)[0])


@torch.no_grad()
def test_rows_of_a_beam_keep_their_own_text() -> None:
    head, tokens = model(), torch.randint(V, (2, 12))
    _, state, _ = head(tokens, head.init_state(None, 2))
    rows, more = torch.tensor([1, 1, 0]), torch.randint(V, (3, 4))
    selected = head(more, select_rows(state, rows))[0]
    whole = head(torch.cat([tokens[rows], more], 1), head.init_state(None, 3))[0]
    torch.testing.assert_close(selected, whole[:, 12:])


@torch.no_grad()
def test_the_row_comes_before_the_training_text() -> None:
    head = model(torch.tensor([0, 1, 2]))  # 2 follows 0, 1
    followers, _ = lookup(head).look_up(torch.tensor([[0, 1, 3, 0, 1]]), lookup(head).init_state(1))
    assert followers[0, :, 0].tolist() == [0, 3, 0, 0, 4]  # token + 1


def test_a_training_text_is_looked_up_in_what_came_before() -> None:
    text = torch.randint(V, (100,))
    head = model(text)  # which would tell every token
    expected = ngram_followers_reference((text + 1).tolist(), lookup(head).lengths)
    inputs = training_inputs(text, 6)
    assert inputs[:, 1:].tolist() == expected
    assert torch.equal(inputs[:, 0], text)


@torch.no_grad()
def test_a_changed_text_is_sorted_again() -> None:
    head, tokens = model(), torch.randint(V, (1, 12))
    head(tokens)
    other = model(torch.tensor([3, 1, 3, 1, 4]))
    head.load_state_dict(other.state_dict())
    torch.testing.assert_close(head(tokens)[0], other(tokens)[0])


@torch.no_grad()
def test_nothing_remembered() -> None:
    head = model(torch.zeros(0, dtype=torch.long))
    followers, _ = lookup(head).look_up(torch.zeros(1, 1, dtype=torch.long), lookup(head).init_state(1))
    assert followers.sum() == 0
