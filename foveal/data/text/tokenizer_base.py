"""Base class of tokenizers: text to token ids and back. Each token is a string of UTF-8 bytes."""

import codecs
import hashlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from foveal.core.errors import UserError
from foveal.store.durable import write_synced

TOKENIZER_FILE = "tokenizer.json"
TokenIds = NDArray[np.int64]


class UnitCounts(NamedTuple):
    """The known and unknown units of texts: characters or words that a training text has, or has not."""

    unit: str
    known: int
    unknown: Counter[str]


class Tokenizer(ABC):
    """A tokenizer. `pieces[i]` are the bytes of token i."""

    kind: str
    unit = ""
    """What a text may have without a token: "characters" or "words". Empty if any text can be encoded."""
    add_bos = False
    """Whether sources begin with `bos`. All sources end with `eos`."""
    prompt_start: tuple[int, ...] = ()
    """The tokens that a language model reads before a prompt."""
    end_tokens: frozenset[int] = frozenset()
    """The tokens at which a generated text ends."""
    keeps_spaces = True
    """Whether decoding restores the white space of a text."""

    def __init__(self, pieces: Sequence[bytes]):
        self.pieces = tuple(pieces)
        continued = [sum(0x80 <= byte < 0xC0 for byte in piece) for piece in pieces]
        self.characters: TokenIds = np.array([len(piece) for piece in pieces], np.int64) - continued
        """The number of characters of each token, (V,).

        A character counts for the token with its first byte.
        """

    @property
    def size(self) -> int:
        """V, the number of tokens."""
        return len(self.pieces)

    @abstractmethod
    def encode(self, text: str) -> TokenIds:
        """Return the token ids (N,) of a text.

        Raises: UserError: the text has a character or word without a token.
        """

    def encode_known(self, text: str) -> tuple[TokenIds, Counter[str]]:
        """Return the token ids of a text without its unknown characters or words, and counts of the unknown
        ones."""
        return self.encode(text), Counter()

    def encode_all_known(self, texts: Sequence[str]) -> list[TokenIds]:
        """Return the token ids of each text, as `encode_known` does."""
        return [self.encode_known(text)[0] for text in texts]

    def count_units(self, texts: Iterable[str]) -> UnitCounts:
        """Count the known and unknown units of texts. A tokenizer that encodes any text counts none."""
        known, unknown = 0, Counter[str]()
        for text in texts if self.unit else ():
            ids, unknown_in_text = self.encode_known(text)
            known += len(ids)
            unknown += unknown_in_text
        return UnitCounts(self.unit, known, unknown)

    def decode(self, ids: Iterable[SupportsIndex]) -> str:
        """Return the text of tokens. Bytes that are not UTF-8 become U+FFFD."""
        return b"".join(self.pieces[i] for i in ids).decode(errors="replace")

    def decoder(self) -> "StreamingDecoder":
        """Return a decoder for text that is generated token by token."""
        return StreamingDecoder(self.pieces)

    @abstractmethod
    def to_json(self) -> str:
        """Return the complete tokenizer as JSON."""

    @property
    def digest(self) -> str:
        """A hash that is equal for equal tokenizers."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def save(self, folder: Path) -> None:
        write_synced(folder / TOKENIZER_FILE, self.to_json().encode())


class StreamingDecoder:
    """Decodes tokens one by one. The bytes of an incomplete character are held back until the character is
    complete."""

    def __init__(self, pieces: Sequence[bytes]):
        self._pieces = pieces
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token: int) -> str:
        return self._utf8.decode(self._pieces[token])

    def flush(self) -> str:
        """Return the remaining text at the end: empty, or U+FFFD for an incomplete character."""
        return self._utf8.decode(b"", final=True)


def encode_utf8(text: str) -> bytes:
    """Return the UTF-8 bytes of a text.

    Raises: UserError: the text has an unpaired surrogate, which has no bytes.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        half = text[error.start]
        raise UserError(
            f"the text holds half a surrogate pair ({half!r}) at {error.start}; leave it out"
        ) from None


@dataclass(frozen=True)
class VocabularySize:
    """Stands for a tokenizer where only the number of its tokens matters."""

    size: int

    @property
    def characters(self) -> TokenIds:
        """The characters of each token: one, for lack of tokens."""
        return np.ones(self.size, np.int64)


Vocabulary = Tokenizer | VocabularySize
