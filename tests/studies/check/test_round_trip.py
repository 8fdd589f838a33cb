"""The law of tokenizers: tokens, decoded and encoded, have the same text."""

from collections import Counter

import pytest

from foveal.data.text.tokenizer_base import TokenIds
from foveal.data.text.tokenizers import ByteTokenizer
from foveal.laws.law import LawBroken
from foveal.studies.check.run_files import check_round_trip


class _AddsALetter(ByteTokenizer):
    """Ends each text with another letter."""

    def encode_known(self, text: str) -> tuple[TokenIds, Counter[str]]:
        return super().encode_known(f"{text}x")


class _DropsALetter(ByteTokenizer):
    """Loses the last letter of each text."""

    def encode_known(self, text: str) -> tuple[TokenIds, Counter[str]]:
        return super().encode_known(text[:-1])


class _WithoutSpaces(_AddsALetter):
    keeps_spaces = False


def test_a_right_tokenizer_keeps_its_texts() -> None:
    check_round_trip([ByteTokenizer()], ["a text", ""])


@pytest.mark.parametrize(
    ("tokenizer", "change"), [(_AddsALetter(), "'' becomes 'x'"), (_DropsALetter(), "becomes")]
)
def test_a_text_that_grows_or_shrinks_is_named_with_its_place(tokenizer: ByteTokenizer, change: str) -> None:
    with pytest.raises(LawBroken, match=f"a text is decoded as another: .*{change}") as broken:
        check_round_trip([tokenizer], ["abc"])
    assert broken.value.place == f"text 0, character {4 if change.startswith(chr(39)) else 1}"


def test_a_tokenizer_that_writes_spaces_of_its_own_promises_nothing() -> None:
    check_round_trip([_WithoutSpaces()], ["abc"])
