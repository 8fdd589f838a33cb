"""Where the words of a sentence stand among its tokens."""

import numpy as np
import pytest

from foveal.data.text.tokenizers import make_tokenizer
from foveal.data.text.words_source import encode_words

WORDS = ["under", "the", "bread", "butter"]
TEXTS = [" " + " ".join(WORDS), " un under bread", "under" * 9, " the the butter bread under"] * 4


@pytest.mark.parametrize("size", [*range(258, 300)])
def test_a_word_is_tagged_at_its_first_token(size: int) -> None:
    """Also where byte-pairs join letters behind a space otherwise than without one."""
    source = make_tokenizer("bpe", size, TEXTS)
    tokens, places = encode_words(WORDS, source)
    bare = tokens[int(source.add_bos) :]
    pieces = [source.encode(f" {word}") for word in WORDS]
    ends = np.cumsum([0, *map(len, pieces)])
    for word, piece, start, place in zip(WORDS, pieces, ends, places, strict=False):
        first = start + int(source.add_bos)
        spelled_apart = len(piece) > 1 and source.decode(piece[:1]) == " "
        assert place == first + spelled_apart, word
        assert bare[start] == piece[0]


def test_characters_spell_the_space_by_itself() -> None:
    source = make_tokenizer("character", 0, TEXTS)
    tokens, places = encode_words(["the", "bread"], source)
    assert source.decode(tokens[places]) == "tb"
