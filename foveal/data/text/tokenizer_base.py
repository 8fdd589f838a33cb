"""What a tokenizer is: text to token numbers and back. Each token stands for a string of bytes of UTF-8."""

import codecs
import hashlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from foveal.core.errors import UserError
from foveal.store.durable import write_synced

TOKENIZER_FILE = "tokenizer.json"
TokenIds = NDArray[np.int64]


class Tokenizer(ABC):
    """`pieces[i]` are the bytes that token i stands for."""

    kind: str
    add_bos = False
    """Whether a source in its tokens begins with the mark `bos`, as it ends with `eos`."""

    def __init__(self, pieces: Sequence[bytes]):
        self.pieces = tuple(pieces)
        continued = [sum(0x80 <= byte < 0xC0 for byte in piece) for piece in pieces]
        self.characters: TokenIds = np.array([len(piece) for piece in pieces], np.int64) - continued
        """(V,): the characters each token stands for; the token with a character's first byte has it."""

    @property
    def size(self) -> int:
        """V, the number of tokens."""
        return len(self.pieces)

    @abstractmethod
    def encode(self, text: str) -> TokenIds:
        """(N,) token numbers. Errors: UserError for text that the tokens can't spell."""

    def encode_known(self, text: str) -> tuple[TokenIds, Counter[str]]:
        """Like `encode`, with the characters that have no token left out and counted."""
        return self.encode(text), Counter()

    def decode(self, ids: Iterable[SupportsIndex]) -> str:
        """The text; bytes that are no UTF-8 become U+FFFD."""
        return b"".join(self.pieces[i] for i in ids).decode(errors="replace")

    def decoder(self) -> "StreamingDecoder":
        """For text that appears token by token."""
        return StreamingDecoder(self.pieces)

    @abstractmethod
    def to_json(self) -> str:
        """All there is to know about it."""

    @property
    def digest(self) -> str:
        """Equal for tokenizers that give equal tokens."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def save(self, folder: Path) -> None:
        write_synced(folder / TOKENIZER_FILE, self.to_json().encode())


class StreamingDecoder:
    """Holds back the bytes of an unfinished character until it is whole."""

    def __init__(self, pieces: Sequence[bytes]):
        self._pieces = pieces
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token: int) -> str:
        return self._utf8.decode(self._pieces[token])

    def flush(self) -> str:
        """What is left at the end: nothing, or U+FFFD for an unfinished character."""
        return self._utf8.decode(b"", final=True)


def encode_utf8(text: str) -> bytes:
    """Its bytes. Errors: UserError for half a surrogate pair, which has none."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        half = text[error.start]
        raise UserError(
            f"the text holds half a surrogate pair ({half!r}) at {error.start}; leave it out"
        ) from None
