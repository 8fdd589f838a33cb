"""Subword tokenizers of the library `tokenizers`: byte-pair encoding, BERT's word pieces, SentencePiece."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from typing import Any

import numpy as np

from foveal.data.text.tokenizer_base import TokenIds, Tokenizer, encode_utf8

CHUNK_CHARACTERS = 4096
"""Characters that byte-pair encoding reads at a time, extended to the end of a word."""
WORD_END = re.compile(r"(?<=\S)(?=[ \n])")
LETTER_END = re.compile(r"(?<=\w)(?=[ \n])")
"""The end of a word for SentencePiece, whose tokens may begin with other signs before a space."""
SPACE = "\u2581"
"""The character that stands for a space in SentencePiece's tokens."""
BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")


class BPETokenizer(Tokenizer):
    """Byte-level byte-pair encoding. `fast` is a `tokenizers.Tokenizer`."""

    kind = "bpe"

    def __init__(self, fast: Any):
        self._fast = fast
        byte_of = {letter: byte for byte, letter in enumerate(bytes_to_unicode())}
        added = fast.get_added_tokens_decoder()  # their text is stored unchanged
        tokens = [fast.id_to_token(i) for i in range(fast.get_vocab_size())]
        super().__init__(
            [
                token.encode() if i in added else bytes(byte_of[letter] for letter in token)
                for i, token in enumerate(tokens)
            ]
        )

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int) -> "BPETokenizer":
        """Train at most `vocab_size` tokens: the 256 bytes, and pairs, merged in order of frequency."""
        from tokenizers import Tokenizer as Fast
        from tokenizers import decoders, models, pre_tokenizers, trainers

        fast = Fast(models.BPE())
        fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        fast.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size, initial_alphabet=alphabet, show_progress=False, special_tokens=[]
        )
        fast.train_from_iterator((list(_chunks(text)) for text in texts), trainer)
        return cls(fast)

    def encode(self, text: str) -> TokenIds:
        return _encode(self._fast, text)

    def encode_all_known(self, texts: Sequence[str]) -> list[TokenIds]:
        return _encode_all(self._fast, texts)

    def to_json(self) -> str:
        return str(self._fast.to_str())


class WordPieceTokenizer(Tokenizer):
    """BERT's WordPiece tokenizer (Devlin et al. 2019): each word is split into the longest pieces of the
    vocabulary.

    The tokenizer may change case and accents, and ignores white space, so decoding does not restore the text:
    there is a space before each word. A word that can't be split into pieces is a single unknown token.
    `fast` is a `tokenizers.Tokenizer`.
    """

    kind = "wordpiece"
    add_bos = True
    keeps_spaces = False

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

    def encode_all_known(self, texts: Sequence[str]) -> list[TokenIds]:
        return _encode_all(self._fast, texts)

    def to_json(self) -> str:
        return str(self._fast.to_str())


class SentencePieceTokenizer(Tokenizer):
    """SentencePiece's byte-pair encoding (Kudo and Richardson 2018), as in Gemma: spaces are letters of
    tokens, and characters without a token are bytes.

    A prompt starts with the token `bos`, and a text ends at a control token. `fast` is a
    `tokenizers.Tokenizer`.
    """

    kind = "sentencepiece"

    def __init__(self, fast: Any):
        self._fast = fast
        added = fast.get_added_tokens_decoder()
        self.prompt_start = tuple(fast.encode("", add_special_tokens=True).ids)
        self.end_tokens = frozenset(number for number, token in added.items() if token.special)
        super().__init__(
            [
                _sentencepiece_bytes(str(fast.id_to_token(i)), i in self.end_tokens)
                for i in range(fast.get_vocab_size())
            ]
        )

    def encode(self, text: str) -> TokenIds:
        return self.encode_all_known([text])[0]

    def encode_all_known(self, texts: Sequence[str]) -> list[TokenIds]:
        return _encode_all(self._fast, texts, LETTER_END)

    def to_json(self) -> str:
        return str(self._fast.to_str())


def _sentencepiece_bytes(token: str, is_control: bool) -> bytes:
    """Return the bytes of a token: those of its text, or the byte that it names."""
    if byte := BYTE_TOKEN.fullmatch(token):
        return bytes([int(byte[1], 16)])
    return token.encode() if is_control else token.replace(SPACE, " ").encode()


def _encode(fast: Any, text: str) -> TokenIds:
    return _encode_all(fast, [text])[0]


def _encode_all(fast: Any, texts: Sequence[str], word_end: re.Pattern[str] = WORD_END) -> list[TokenIds]:
    for text in texts:
        encode_utf8(text)
    chunks = [[*_chunks(text, word_end)] for text in texts]
    encodings = iter(fast.encode_batch_fast([*chain.from_iterable(chunks)], add_special_tokens=False))
    parts = (chain.from_iterable(next(encodings).ids for _ in each) for each in chunks)
    return [np.fromiter(ids, np.int64) for ids in parts]


def _chunks(text: str, word_end: re.Pattern[str] = WORD_END) -> Iterator[str]:
    """Yield the text in short chunks, whose tokens are the same as those of the whole text, in less time and
    memory.

    A token can start with white space, but white space never occurs later in the token, behind the end of a
    word, so a chunk can end there. Only words of thousands of characters are cut: merging their pairs would
    take quadratic time.
    """
    start = 0
    while start < len(text):
        end = word_end.search(text, start + CHUNK_CHARACTERS, start + 2 * CHUNK_CHARACTERS)
        stop = end.start() if end else start + 2 * CHUNK_CHARACTERS
        yield text[start:stop]
        start = stop


def bytes_to_unicode() -> str:
    """Return the character of each byte in byte-level BPE: printable bytes unchanged, others from
    U+0100 on."""
    plain = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = count(0x100)
    return "".join(chr(byte if byte in plain else next(others)) for byte in range(256))
