"""The tokenizers that a run may have, made of its training text or read back.

Character: one token for each character of the training text. Word: for each word between white space (for
signs and commands, not for prose). Byte: the 256 bytes. BPE: byte-level byte-pair encoding (Sennrich et al.
2016; Radford et al. 2019). Byte and BPE encode any text and give back exactly it. WordPiece comes with a
BERT.
"""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from foveal.config import TokenizerName
from foveal.core.errors import UserError
from foveal.data.text.subword_tokenizers import BPETokenizer, WordPieceTokenizer
from foveal.data.text.tokenizer_base import TOKENIZER_FILE, StreamingDecoder, TokenIds, Tokenizer, encode_utf8


class CharacterTokenizer(Tokenizer):
    """One token for each of `vocabulary`'s characters, in the order of their code points."""

    kind = "character"

    def __init__(self, vocabulary: Iterable[str]):
        self.vocabulary = "".join(sorted(set(vocabulary)))
        super().__init__([character.encode() for character in self.vocabulary])
        self._ids = np.full(0x110000, -1, np.int32)
        self._ids[[ord(character) for character in self.vocabulary]] = np.arange(self.size)

    def encode(self, text: str) -> TokenIds:
        ids, unknown = self.encode_known(text)
        if unknown:
            names = ", ".join(repr(character) for character in sorted(unknown)[:10])
            more = f" and {len(unknown) - 10} more" if len(unknown) > 10 else ""
            raise UserError(
                f"the training text has no {names}{more}, so a character tokenizer has no token for it; "
                "leave it out, or train with data.tokenizer=byte"
            )
        return ids

    def encode_known(self, text: str) -> tuple[TokenIds, Counter[str]]:
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

    def encode(self, text: str) -> TokenIds:
        return np.frombuffer(encode_utf8(text), np.uint8).astype(np.int64)

    def to_json(self) -> str:
        return json.dumps({"kind": self.kind})


class WordTokenizer(Tokenizer):
    """One token for each of `vocabulary`'s words, which white space parts; a space is written behind."""

    kind = "word"

    def __init__(self, vocabulary: Iterable[str]):
        self.vocabulary = sorted(set(vocabulary))
        super().__init__([f"{word} ".encode() for word in self.vocabulary])
        self._ids = {word: i for i, word in enumerate(self.vocabulary)}

    def encode(self, text: str) -> TokenIds:
        ids, unknown = self.encode_known(text)
        if unknown:
            raise UserError(f"the training text has no word {min(unknown)!r}, so there is no token for it")
        return ids

    def encode_known(self, text: str) -> tuple[TokenIds, Counter[str]]:
        words = text.split()
        known = [self._ids[word] for word in words if word in self._ids]
        return np.array(known, np.int64), Counter(word for word in words if word not in self._ids)

    def to_json(self) -> str:
        return json.dumps({"kind": self.kind, "vocabulary": self.vocabulary})


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
    path = folder / TOKENIZER_FILE
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


__all__ = [
    "TOKENIZER_FILE",
    "BPETokenizer",
    "ByteTokenizer",
    "CharacterTokenizer",
    "StreamingDecoder",
    "TokenIds",
    "Tokenizer",
    "WordPieceTokenizer",
    "WordTokenizer",
    "load_tokenizer",
    "make_tokenizer",
]
