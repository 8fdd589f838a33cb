"""Attention between words as a file: a picture, a page or numbers."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from foveal.core.errors import UserError
from foveal.inspection.attention.panels import word_grid, word_panel, words_over_image
from foveal.inspection.attention.words import ImageAttention, WordAttention, head_index
from foveal.inspection.files import payload_file
from foveal.inspection.panels import Images, Panel
from foveal.inspection.payload import Payload
from foveal.store.durable import atomic_write

PICTURES = (".png", ".svg", ".pdf", ".html")
"""The endings of files in which attention is drawn."""
CAVEAT = "weights show where the model read, not why it chose the word (Jain and Wallace 2019)"


def write_word_attention(path: Path, examples: Sequence[WordAttention], head: str | None = None) -> None:
    """Write the examples to `path` as `render_word_attention` returns them.

    Raises: UserError: the suffix is unknown, there are no examples, or there is no such head.
    """
    atomic_write(path, render_word_attention(path, examples, head))


def render_word_attention(path: Path, examples: Sequence[WordAttention], head: str | None = None) -> bytes:
    """Return the content of a picture (.png, .svg, .pdf), an HTML page (.html) or numbers (.json), by the
    suffix of `path`.

    A picture shows `head`, by default the mean of all heads. An HTML page also has the maps of all heads, and
    numbers are those of all heads.

    Raises: UserError: the suffix is unknown, there are no examples, there is no such head, or the picture
    would be too large.
    """
    if not examples:
        raise UserError(f"{path}: there are no examples to draw; give at least one")
    if head is not None:
        for example in examples:
            head_index(head, example.heads)
    if path.suffix == ".json":
        return _to_json(examples)
    if path.suffix in PICTURES:
        payload = words_payload(examples, head)
        if path.suffix == ".html":
            payload = replace(payload, panels=(*_with_all_heads(payload, examples),))
        return payload_file(payload, path.suffix)
    raise UserError(
        f"{path}: an alignment is written as .png, .svg, .pdf, .html or .json; choose one of them"
    )


def words_payload(examples: Sequence[WordAttention], head: str | None) -> Payload:
    """Return the map of each example, of a head or of the mean of all heads."""
    heads = len(examples[0].heads)
    name = "weights" if heads == 1 else f"mean of {heads} heads" if head is None else f"head {head}"
    panels = tuple(word_panel(str(number), each, head) for number, each in enumerate(examples, 1))
    subject, title = f"these {len(examples)} examples", f"what is read for each written word: {name}"
    return Payload("alignment", subject, title, panels, CAVEAT, "exact")


def _with_all_heads(payload: Payload, examples: Sequence[WordAttention]) -> Iterator[Panel]:
    """Yield the map of each example, and the maps of its heads if there are several."""
    for number, (panel, example) in enumerate(zip(payload.panels, examples, strict=True), 1):
        yield panel
        if len(example.heads) > 1:
            yield word_grid(f"{number}: all heads", example)


def images_payload(examples: Sequence[ImageAttention]) -> Payload:
    """Return each image, and the image with the weights of each word."""
    rows = tuple(
        row for each in examples for row in words_over_image(each.weights, each.words, each.grid, each.pixels)
    )
    title = "where the model looks for each word; below it, its largest weight"
    panels = (Images("", rows),)
    return Payload("alignment", f"these {len(examples)} images", title, panels, CAVEAT, "exact")


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
