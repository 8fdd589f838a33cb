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
from foveal.data.text.unicode_scripts import without_spaces
from foveal.store.durable import replace_file

Piece = str | bytes
"""What a token stands for. Bytes may be part of a character."""
MARK = re.compile(r" ?</?\w+>")
"""A token that stands for no text, such as `<stop>`: a word by itself."""
BEFORE_A_WORD = (" ", "Ġ", "▁")
"""White space in front of a word, as it is and as tokenizers write it."""


@dataclass(frozen=True)
class Alignment:
    """`weights[h, t, s]`: how much head h reads of `source[s]` while `target[t]` is written."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: Float[np.ndarray, "H T S"]
    heads: tuple[str, ...]
    """Their names."""

    def view(self, head: str | None) -> Float[np.ndarray, "T S"]:
        """The weights of one head, or the mean of all. Errors: UserError for one that is not there."""
        return self.weights.mean(0) if head is None else self.weights[number_of(head, self.heads)]


def number_of(head: str, heads: Sequence[str]) -> int:
    """Errors: UserError for one that is not there."""
    if head not in heads:
        raise UserError(f"--head {head}: there is no such head; there are {', '.join(heads)}")
    return heads.index(head)


def align_words(
    source: Sequence[Piece],
    target: Sequence[Piece],
    weights: Float[np.ndarray, "H T S"],
    heads: Sequence[str] = (),
) -> Alignment:
    """Weights between pieces (T target, S source) as weights between words; heads without names are numbers
    from 1 on.

    What is read of a word is the sum over its pieces; what a word reads, the mean over its pieces. A piece
    begins a word if white space is in front of it or ends the piece before, or if it is of a script without
    spaces. A side that is written in single characters stays so.
    """
    if not source or not target:
        raise UserError("there is nothing to align: the source or the target has no tokens; leave it out")
    sources, starts = words(source)
    targets, read = by_words(target, np.add.reduceat(weights.astype(np.float64), starts, axis=2))
    return Alignment(sources, targets, read, tuple(heads) or tuple(str(1 + i) for i in range(len(weights))))


def by_words(
    target: Sequence[Piece], weights: Float[np.ndarray, "H T S"]
) -> tuple[tuple[str, ...], Float[np.ndarray, "H W S"]]:
    """The words of a target, and what each reads: the mean over its pieces."""
    texts, starts = words(target)
    sizes = np.diff(starts, append=len(target))
    return texts, np.add.reduceat(weights.astype(np.float64), starts, axis=1) / sizes[:, None]


def words(pieces: Sequence[Piece]) -> tuple[tuple[str, ...], Int[np.ndarray, " W"]]:
    """The words that the pieces make, and the number of each one's first piece."""
    spelt = [piece.encode(errors="replace") if isinstance(piece, str) else piece for piece in pieces]
    whole = [i for i, piece in enumerate(spelt) if i == 0 or not _goes_on(piece)]
    texts = _joined(spelt, whole)
    letters = [text for text in texts if not MARK.fullmatch(text)]
    if all(len(text) <= 1 for text in letters):
        starts = whole
    else:
        pairs = zip(whole, texts, ["", *texts], strict=False)
        starts = [i for i, text, before in pairs if i == 0 or _begins_word(text, before)]
    return tuple(map(_shown, _joined(spelt, starts))), np.array(starts)


def write_alignment(path: Path, examples: Sequence[Alignment], head: str | None = None) -> None:
    """Write the examples as a picture (.png), a page (.html) or numbers (.json), as `path` ends.

    `head` is the one drawn, by default the mean of all; .html and .json have them all.
    Errors: UserError for another suffix, no examples, or no such head.
    """
    if not examples:
        raise UserError(f"{path}: there are no examples to draw; give at least one")
    if head is not None:
        for example in examples:
            number_of(head, example.heads)
    if path.suffix == ".json":
        content = _json(examples)
    elif path.suffix == ".png":
        from foveal.inspection.attention_maps.plot import draw

        content = draw(examples, head)
    elif path.suffix == ".html":
        from foveal.inspection.attention_maps.html_page import page

        content = page(examples, head)
    else:
        raise UserError(f"{path}: an alignment is written as .png, .html or .json; choose one of them")
    replace_file(path, content)


def _json(examples: Sequence[Alignment]) -> bytes:
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


def _goes_on(piece: bytes) -> bool:
    """Whether it begins inside a character."""
    return bool(piece) and 0x80 <= piece[0] < 0xC0


def _joined(pieces: Sequence[bytes], starts: Sequence[int]) -> list[str]:
    ends = [*starts[1:], len(pieces)]
    return [
        b"".join(pieces[start:end]).decode(errors="replace") for start, end in zip(starts, ends, strict=True)
    ]


def _begins_word(text: str, before: str) -> bool:
    return (
        text.startswith(BEFORE_A_WORD)
        or (before.endswith(" ") and not before.isspace())
        or bool(MARK.fullmatch(text) or MARK.fullmatch(before))
        or without_spaces(text)
    )


def _shown(word: str) -> str:
    """The word without the white space about it, and what can't be seen as a sign."""
    bare = word.strip("".join(BEFORE_A_WORD)) or "␣"
    return bare.translate({ord("\n"): "↵", ord("\r"): "↵", ord("\t"): "⇥"})
