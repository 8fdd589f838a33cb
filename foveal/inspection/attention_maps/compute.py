"""Which source words each target word was written from: attention weights between words.

Bahdanau et al. (2015), figure 3. Pictures of them are in `alignment_picture` and `alignment_page`.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from foveal.core.errors import UserError
from foveal.metrics.unicode_scripts import is_spaceless
from foveal.store.durable import atomic_write

TokenText = str | bytes
"""What a token stands for. Bytes may be part of a character."""
SPECIAL_TOKEN = re.compile(r" ?</?\w+>")
"""A token that stands for no text, such as `<stop>`: a word by itself."""
WORD_PREFIXES = (" ", "Ġ", "▁")
"""White space in front of a word, as it is and as tokenizers write it."""


@dataclass(frozen=True)
class WordAttention:
    """`weights[h, t, s]`: how much head h reads of `source[s]` while `target[t]` is written."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: Float[np.ndarray, "H T S"]
    heads: tuple[str, ...]
    """Their names."""

    def head_weights(self, head: str | None) -> Float[np.ndarray, "T S"]:
        """The weights of one head, or the mean of all. Errors: UserError for one that is not there."""
        return self.weights.mean(0) if head is None else self.weights[head_index(head, self.heads)]


def head_index(head: str, heads: Sequence[str]) -> int:
    """Errors: UserError for one that is not there."""
    if head not in heads:
        raise UserError(f"--head {head}: there is no such head; there are {', '.join(heads)}")
    return heads.index(head)


def word_attention(
    source: Sequence[TokenText],
    target: Sequence[TokenText],
    weights: Float[np.ndarray, "H T S"],
    heads: Sequence[str] = (),
) -> WordAttention:
    """Weights between pieces (T target, S source) as weights between words; heads without names are numbers
    from 1 on.

    What is read of a word is the sum over its pieces; what a word reads, the mean over its pieces. A piece
    begins a word if white space is in front of it or ends the piece before, or if it is of a script without
    spaces. A side that is written in single characters stays so.
    """
    if not source or not target:
        raise UserError("there is nothing to align: the source or the target has no tokens; leave it out")
    sources, starts = split_words(source)
    targets, read = average_target_words(target, np.add.reduceat(weights.astype(np.float64), starts, axis=2))
    return WordAttention(
        sources, targets, read, tuple(heads) or tuple(str(1 + i) for i in range(len(weights)))
    )


def average_target_words(
    target: Sequence[TokenText], weights: Float[np.ndarray, "H T S"]
) -> tuple[tuple[str, ...], Float[np.ndarray, "H W S"]]:
    """The words of a target, and what each reads: the mean over its pieces."""
    texts, starts = split_words(target)
    sizes = np.diff(starts, append=len(target))
    return texts, np.add.reduceat(weights.astype(np.float64), starts, axis=1) / sizes[:, None]


def split_words(pieces: Sequence[TokenText]) -> tuple[tuple[str, ...], Int[np.ndarray, " W"]]:
    """The words that the pieces make, and the number of each one's first piece."""
    spelt = [piece.encode(errors="replace") if isinstance(piece, str) else piece for piece in pieces]
    whole = [i for i, piece in enumerate(spelt) if i == 0 or not _is_continuation(piece)]
    texts = _join_tokens(spelt, whole)
    letters = [text for text in texts if not SPECIAL_TOKEN.fullmatch(text)]
    if all(len(text) <= 1 for text in letters):
        starts = whole
    else:
        pairs = zip(whole, texts, ["", *texts], strict=False)
        starts = [i for i, text, before in pairs if i == 0 or _starts_word(text, before)]
    return tuple(map(_visible_text, _join_tokens(spelt, starts))), np.array(starts)


def write_word_attention(path: Path, examples: Sequence[WordAttention], head: str | None = None) -> None:
    """Write the examples as a picture (.png), a page (.html) or numbers (.json), as `path` ends.

    `head` is the one drawn, by default the mean of all; .html and .json have them all.
    Errors: UserError for another suffix, no examples, or no such head.
    """
    if not examples:
        raise UserError(f"{path}: there are no examples to draw; give at least one")
    if head is not None:
        for example in examples:
            head_index(head, example.heads)
    if path.suffix == ".json":
        content = _to_json(examples)
    elif path.suffix == ".png":
        from foveal.inspection.attention_maps.plot import plot_word_attention

        content = plot_word_attention(examples, head)
    elif path.suffix == ".html":
        from foveal.inspection.attention_maps.html_page import attention_html

        content = attention_html(examples, head)
    else:
        raise UserError(f"{path}: an alignment is written as .png, .html or .json; choose one of them")
    atomic_write(path, content)


def _to_json(examples: Sequence[WordAttention]) -> bytes:
    content = [
        {
            "source": example.source,
            "target": example.target,
            "heads": example.heads,
            "weights": example.weights.tolist(),
        }
        for example in examples
    ]
    return json.dumps({"examples": content}, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _is_continuation(piece: bytes) -> bool:
    """Whether it begins inside a character."""
    return bool(piece) and 0x80 <= piece[0] < 0xC0


def _join_tokens(pieces: Sequence[bytes], starts: Sequence[int]) -> list[str]:
    ends = [*starts[1:], len(pieces)]
    return [
        b"".join(pieces[start:end]).decode(errors="replace") for start, end in zip(starts, ends, strict=True)
    ]


def _starts_word(text: str, before: str) -> bool:
    return (
        text.startswith(WORD_PREFIXES)
        or (before.endswith(" ") and not before.isspace())
        or bool(SPECIAL_TOKEN.fullmatch(text) or SPECIAL_TOKEN.fullmatch(before))
        or is_spaceless(text)
    )


def _visible_text(word: str) -> str:
    """The word without the white space about it, and what can't be seen as a sign."""
    bare = word.strip("".join(WORD_PREFIXES)) or "␣"
    return bare.translate({ord("\n"): "↵", ord("\r"): "↵", ord("\t"): "⇥"})
