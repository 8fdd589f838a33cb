"""All tokenizers, which are fitted to a training text or loaded from a run.

Character: a token for each character of the training text. Word: a token for each word between white space
(for symbols and commands, not for prose). Byte: the 256 bytes. BPE: byte-level byte-pair encoding (Sennrich
et al. 2016; Radford et al. 2019). Byte and BPE can encode any text, and decoding restores the text exactly.
WordPiece is imported with a BERT model, SentencePiece with Gemma.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from foveal.config import TokenizerName
from foveal.core.errors import UserError
from foveal.core.parse_json import parse_json
from foveal.core.rust_panics import panics_as_errors
from foveal.data.text.subword_tokenizers import BPETokenizer, SentencePieceTokenizer, WordPieceTokenizer
from foveal.data.text.tokenizer_base import TOKENIZER_FILE, StreamingDecoder, TokenIds, Tokenizer, encode_utf8
from foveal.store.regular_files import read_regular


class CharacterTokenizer(Tokenizer):
    """One token for each character of `vocabulary`, in the order of their code points."""

    kind, unit = "character", "characters"

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

    def encode_all_known(self, texts: Sequence[str]) -> list[TokenIds]:
        points = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), "<u4")
        ids = self._ids[points].astype(np.int64)
        known = ids >= 0
        ends = np.cumsum([*map(len, texts)], dtype=np.int64)
        known_ends = np.append(0, known.cumsum())[ends]  # how many are known up to the end of each text
        return np.split(ids[known], known_ends[:-1])

    def to_json(self) -> str:
        return json.dumps({"kind": self.kind, "vocabulary": self.vocabulary})


class ByteTokenizer(Tokenizer):
    """One token for each of the 256 bytes."""

    kind = "byte"

    def __init__(self) -> None:
        super().__init__([bytes([byte]) for byte in range(256)])

    def encode(self, text: str) -> TokenIds:
        return np.frombuffer(encode_utf8(text), np.uint8).astype(np.int64)

    def to_json(self) -> str:
        return json.dumps({"kind": self.kind})


class WordTokenizer(Tokenizer):
    """A token for each word of `vocabulary`. Words are separated by white space. Decoding adds a space after
    each word."""

    kind, unit = "word", "words"

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


def make_tokenizer(kind: TokenizerName, vocab_size: int, texts: Iterable[str]) -> Tokenizer:
    """Fit a tokenizer to the training `texts`. `vocab_size` is the size of BPE's vocabulary.

    Raises: UserError: the kind is "wordpiece" or "sentencepiece", which can't be fitted.
    """
    if kind == "byte":
        return ByteTokenizer()
    if kind in ("wordpiece", "sentencepiece"):
        raise UserError(
            f"data.tokenizer={kind} comes with a model (foveal train DATA --from RUN); for a text set "
            "data.tokenizer=bpe"
        )
    if kind == "bpe":
        return BPETokenizer.train(texts, vocab_size)
    if kind == "word":
        return WordTokenizer(word for text in texts for word in text.split())
    characters: set[str] = set()
    for text in texts:
        characters.update(text)
    return CharacterTokenizer(characters)


def _subword_class(
    model: Mapping[str, Any],
) -> type[BPETokenizer | SentencePieceTokenizer | WordPieceTokenizer]:
    """Return the class of a tokenizer of the library `tokenizers` with this model."""
    if model["type"] == "WordPiece":
        return WordPieceTokenizer
    return SentencePieceTokenizer if model.get("byte_fallback") else BPETokenizer


def load_tokenizer(folder: Path) -> Tokenizer:
    """Read the tokenizer that `save` wrote.

    Raises: UserError: the file is missing, or not a tokenizer.
    """
    path = folder / TOKENIZER_FILE
    try:
        text = read_regular(path).decode()
        content = parse_json(text)
        kind = content.get("kind", "fast")
        if kind == "fast":
            from tokenizers import Tokenizer as Fast

            with panics_as_errors():
                return _subword_class(content["model"])(Fast.from_str(text))
        if kind == "byte":
            return ByteTokenizer()
        return (WordTokenizer if kind == "word" else CharacterTokenizer)(content["vocabulary"])
    except UserError:
        raise
    except Exception as error:  # the library raises plain Exception
        raise UserError(f"{path}: not a tokenizer's file ({error}); get the run's folder again") from None


__all__ = [
    "TOKENIZER_FILE",
    "BPETokenizer",
    "ByteTokenizer",
    "CharacterTokenizer",
    "SentencePieceTokenizer",
    "StreamingDecoder",
    "TokenIds",
    "Tokenizer",
    "WordPieceTokenizer",
    "WordTokenizer",
    "load_tokenizer",
    "make_tokenizer",
]
