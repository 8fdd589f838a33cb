"""Tokenizers: text to token numbers and back. Each token stands for a string of bytes of UTF-8.

Character: one token for each character of the training text. Word: for each word between white space (for
signs and commands, not for prose). Byte: the 256 bytes. BPE: byte-level
byte-pair encoding (Sennrich et al. 2016; Radford et al. 2019), trained on the training text, by the
`tokenizers` library. Byte and BPE encode any text and give back exactly it. WordPiece comes with a BERT.
"""

import codecs
import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from foveal.config import TokenizerName
from foveal.core.durable import write_new
from foveal.core.errors import UserError

FILE = "tokenizer.json"
PART = 4096
"""Characters that byte-pair encoding is given at a time, to the end of a word."""
WORD_END = re.compile(r"(?<=\S)(?=[ \n])")
Ids = NDArray[np.int64]


class Tokenizer(ABC):
    """`pieces[i]` are the bytes that token i stands for."""

    kind: str
    opened = False
    """Whether a source in its tokens begins with the mark `start`, as it ends with `stop`."""

    def __init__(self, pieces: Sequence[bytes]):
        self.pieces = tuple(pieces)
        continued = [sum(0x80 <= byte < 0xC0 for byte in piece) for piece in pieces]
        self.characters: Ids = np.array([len(piece) for piece in pieces], np.int64) - continued
        """(V,): the characters each token stands for; the token with a character's first byte has it."""

    @property
    def size(self) -> int:
        """V, the number of tokens."""
        return len(self.pieces)

    @abstractmethod
    def encode(self, text: str) -> Ids:
        """(N,) token numbers. Errors: UserError for text that the tokens can't spell."""

    def encode_known(self, text: str) -> tuple[Ids, Counter[str]]:
        """Like `encode`, with the characters that have no token left out and counted."""
        return self.encode(text), Counter()

    def decode(self, ids: Iterable[SupportsIndex]) -> str:
        """The text; bytes that are no UTF-8 become U+FFFD."""
        return b"".join(self.pieces[i] for i in ids).decode(errors="replace")

    def decoder(self) -> "Decoder":
        """For text that appears token by token."""
        return Decoder(self.pieces)

    @abstractmethod
    def to_json(self) -> str:
        """All there is to know about it."""

    @property
    def digest(self) -> str:
        """Equal for tokenizers that give equal tokens."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def save(self, folder: Path) -> None:
        write_new(folder / FILE, self.to_json().encode())


class Decoder:
    """Holds back the bytes of an unfinished character until it is whole."""

    def __init__(self, pieces: Sequence[bytes]):
        self._pieces = pieces
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token: int) -> str:
        return self._utf8.decode(self._pieces[token])

    def flush(self) -> str:
        """What is left at the end: nothing, or U+FFFD for an unfinished character."""
        return self._utf8.decode(b"", final=True)


class CharacterTokenizer(Tokenizer):
    """One token for each of `vocabulary`'s characters, in the order of their code points."""

    kind = "character"

    def __init__(self, vocabulary: Iterable[str]):
        self.vocabulary = "".join(sorted(set(vocabulary)))
        super().__init__([character.encode() for character in self.vocabulary])
        self._ids = np.full(0x110000, -1, np.int32)
        self._ids[[ord(character) for character in self.vocabulary]] = np.arange(self.size)

    def encode(self, text: str) -> Ids:
        ids, unknown = self.encode_known(text)
        if unknown:
            names = ", ".join(repr(character) for character in sorted(unknown)[:10])
            more = f" and {len(unknown) - 10} more" if len(unknown) > 10 else ""
            raise UserError(
                f"the training text has no {names}{more}, so a character tokenizer has no token for it; "
                "leave it out, or train with data.tokenizer=byte"
            )
        return ids

    def encode_known(self, text: str) -> tuple[Ids, Counter[str]]:
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
        ids = self._ids[points]
        known = ids >= 0
        if known.all():
            return ids.astype(np.int64), Counter()
        points, counts = np.unique(points[~known], return_counts=True)
        return ids[known].astype(np.int64), Counter(dict(zip(map(chr, points), counts.tolist(), strict=True)))

    def to_json(self) -> str:
        return json.dumps({"kind": self.kind, "vocabulary": self.vocabulary})


class ByteTokenizer(Tokenizer):
    """The 256 bytes."""

    kind = "byte"

    def __init__(self) -> None:
        super().__init__([bytes([byte]) for byte in range(256)])

    def encode(self, text: str) -> Ids:
        return np.frombuffer(_utf8(text), np.uint8).astype(np.int64)

    def to_json(self) -> str:
        return json.dumps({"kind": self.kind})


class WordTokenizer(Tokenizer):
    """One token for each of `vocabulary`'s words, which white space parts; a space is written behind."""

    kind = "word"

    def __init__(self, vocabulary: Iterable[str]):
        self.vocabulary = sorted(set(vocabulary))
        super().__init__([f"{word} ".encode() for word in self.vocabulary])
        self._ids = {word: i for i, word in enumerate(self.vocabulary)}

    def encode(self, text: str) -> Ids:
        ids, unknown = self.encode_known(text)
        if unknown:
            raise UserError(f"the training text has no word {min(unknown)!r}, so there is no token for it")
        return ids

    def encode_known(self, text: str) -> tuple[Ids, Counter[str]]:
        words = text.split()
        known = [self._ids[word] for word in words if word in self._ids]
        return np.array(known, np.int64), Counter(word for word in words if word not in self._ids)

    def to_json(self) -> str:
        return json.dumps({"kind": self.kind, "vocabulary": self.vocabulary})


class BPETokenizer(Tokenizer):
    """Byte-level byte-pair encoding. `fast` is a `tokenizers.Tokenizer`."""

    kind = "bpe"

    def __init__(self, fast: Any):
        self._fast = fast
        byte_of = {letter: byte for byte, letter in enumerate(byte_letters())}
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
        fast.train_from_iterator((list(_words(text)) for text in texts), trainer)
        return cls(fast)

    def encode(self, text: str) -> Ids:
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
    opened = True

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

    def encode(self, text: str) -> Ids:
        return _encode(self._fast, text)

    def to_json(self) -> str:
        return str(self._fast.to_str())


def make_tokenizer(kind: TokenizerName, vocabulary: int, texts: Iterable[str]) -> Tokenizer:
    """The tokenizer of a kind for a training text, given in pieces; `vocabulary` is BPE's size."""
    if kind == "byte":
        return ByteTokenizer()
    if kind == "wordpiece":
        raise UserError(
            "word pieces come with a model (foveal train DATA --from RUN): of a text take data.tokenizer=bpe"
        )
    if kind == "bpe":
        return BPETokenizer.train(texts, vocabulary)
    if kind == "word":
        return WordTokenizer(word for text in texts for word in text.split())
    seen: set[str] = set()
    for text in texts:
        seen.update(text)
    return CharacterTokenizer(seen)


def load_tokenizer(folder: Path) -> Tokenizer:
    """What `save` wrote. Errors: UserError names a file that is missing or holds something else."""
    path = folder / FILE
    try:
        text = path.read_bytes().decode()
        content = json.loads(text)
        kind = content.get("kind", "fast")
        if kind == "fast":
            from tokenizers import Tokenizer as Fast

            ours = WordPieceTokenizer if content["model"]["type"] == "WordPiece" else BPETokenizer
            return ours(Fast.from_str(text))
        if kind == "byte":
            return ByteTokenizer()
        make = WordTokenizer if kind == "word" else CharacterTokenizer
        return make(content["vocabulary"])
    except OSError as error:
        raise UserError(f"{path}: can't read: {error.strerror}") from None
    except Exception as error:  # the library raises plain Exception
        raise UserError(f"{path}: not a tokenizer's file ({error}); get the run's folder anew") from None


def _encode(fast: Any, text: str) -> Ids:
    _utf8(text)
    found = fast.encode_batch_fast(list(_words(text)), add_special_tokens=False)
    return np.fromiter(chain.from_iterable(encoding.ids for encoding in found), np.int64)


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        half = text[error.start]
        raise UserError(
            f"the text holds half a surrogate pair ({half!r}) at {error.start}; leave it out"
        ) from None


def _words(text: str) -> Iterator[str]:
    """The text in short parts that give the same tokens as the whole, faster and in less memory.

    A token of byte-level BPE may begin with white space but never goes on to it, so a part may end there.
    Only a word of thousands of characters is cut: its pairs would be merged in quadratic time.
    """
    start = 0
    while start < len(text):
        end = WORD_END.search(text, start + PART, start + 2 * PART)
        stop = end.start() if end else start + 2 * PART
        yield text[start:stop]
        start = stop


def byte_letters() -> str:
    """The letters that byte-level BPE writes its bytes in: printable ones as they are, others from U+0100."""
    plain = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = count(0x100)
    return "".join(chr(byte if byte in plain else next(others)) for byte in range(256))
