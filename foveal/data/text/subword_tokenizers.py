"""Tokens of several letters, by the `tokenizers` library: byte pairs, and BERT's word pieces."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, count
from typing import Any

import numpy as np

from foveal.data.text.tokenizer_base import TokenIds, Tokenizer, encode_utf8

CHUNK_CHARACTERS = 4096
"""Characters that byte-pair encoding is given at a time, to the end of a word."""
WORD_END = re.compile(r"(?<=\S)(?=[ \n])")


class BPETokenizer(Tokenizer):
    """Byte-level byte-pair encoding. `fast` is a `tokenizers.Tokenizer`."""

    kind = "bpe"

    def __init__(self, fast: Any):
        self._fast = fast
        byte_of = {letter: byte for byte, letter in enumerate(bytes_to_unicode())}
        added = fast.get_added_tokens_decoder()  # written as they are
        letters = [fast.id_to_token(i) for i in range(fast.get_vocab_size())]
        super().__init__(
            [
                token.encode() if i in added else bytes(byte_of[letter] for letter in token)
                for i, token in enumerate(letters)
            ]
        )

    @classmethod
    def train(cls, texts: Iterable[str], vocabulary: int) -> "BPETokenizer":
        """At most `vocabulary` tokens: the 256 bytes, and pairs merged most frequent first."""
        from tokenizers import Tokenizer as Fast
        from tokenizers import decoders, models, pre_tokenizers, trainers

        fast = Fast(models.BPE())
        fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        fast.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=vocabulary, initial_alphabet=alphabet, show_progress=False, special_tokens=[]
        )
        fast.train_from_iterator((list(_chunks(text)) for text in texts), trainer)
        return cls(fast)

    def encode(self, text: str) -> TokenIds:
        return _encode(self._fast, text)

    def to_json(self) -> str:
        return str(self._fast.to_str())


class WordPieceTokenizer(Tokenizer):
    """BERT's: words and signs of a list, others of its pieces, the longest first (Devlin et al. 2019).

    It may change case and accents, and knows no white space, so a text does not come back as it was: it is
    written with a space before each word. What can't be spelt is one token. `fast` is a
    `tokenizers.Tokenizer`.
    """

    kind = "wordpiece"
    add_bos = True

    def __init__(self, fast: Any):
        self._fast = fast
        prefix = str(fast.model.continuing_subword_prefix)
        words = [str(fast.id_to_token(i)) for i in range(fast.get_vocab_size())]
        super().__init__(
            [
                (word.removeprefix(prefix) if word.startswith(prefix) else f" {word}").encode()
                for word in words
            ]
        )

    def encode(self, text: str) -> TokenIds:
        return _encode(self._fast, text)

    def to_json(self) -> str:
        return str(self._fast.to_str())


def _encode(fast: Any, text: str) -> TokenIds:
    encode_utf8(text)
    found = fast.encode_batch_fast(list(_chunks(text)), add_special_tokens=False)
    return np.fromiter(chain.from_iterable(encoding.ids for encoding in found), np.int64)


def _chunks(text: str) -> Iterator[str]:
    """The text in short parts that give the same tokens as the whole, faster and in less memory.

    A token of byte-level BPE may begin with white space but never goes on to it, so a part may end there.
    Only a word of thousands of characters is cut: its pairs would be merged in quadratic time.
    """
    start = 0
    while start < len(text):
        end = WORD_END.search(text, start + CHUNK_CHARACTERS, start + 2 * CHUNK_CHARACTERS)
        stop = end.start() if end else start + 2 * CHUNK_CHARACTERS
        yield text[start:stop]
        start = stop


def bytes_to_unicode() -> str:
    """The letters that byte-level BPE writes its bytes in: printable ones as they are, others from U+0100."""
    plain = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = count(0x100)
    return "".join(chr(byte if byte in plain else next(others)) for byte in range(256))
