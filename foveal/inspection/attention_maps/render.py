"""Attention between words as a file: a picture, a page or numbers."""

import json
from collections.abc import Sequence
from pathlib import Path

from foveal.core.errors import UserError
from foveal.inspection.attention_maps.compute import WordAttention, head_index
from foveal.inspection.attention_maps.html_page import attention_html
from foveal.inspection.attention_maps.plot import plot_word_attention
from foveal.store.durable import atomic_write


def write_word_attention(path: Path, examples: Sequence[WordAttention], head: str | None = None) -> None:
    """Write the examples to `path` as `render_word_attention` returns them.

    Raises: UserError: the suffix is unknown, there are no examples, or there is no such head.
    """
    atomic_write(path, render_word_attention(path, examples, head))


def render_word_attention(path: Path, examples: Sequence[WordAttention], head: str | None = None) -> bytes:
    """Return the content of a picture (.png), an HTML page (.html) or numbers (.json), by the suffix of
    `path`.

    A picture shows `head`, by default the mean of all heads. An HTML page and numbers contain all heads.

    Raises: UserError: the suffix is unknown, there are no examples, or there is no such head.
    """
    if not examples:
        raise UserError(f"{path}: there are no examples to draw; give at least one")
    if head is not None:
        for example in examples:
            head_index(head, example.heads)
    if path.suffix == ".json":
        return _to_json(examples)
    if path.suffix == ".png":
        return plot_word_attention(examples, head)
    if path.suffix == ".html":
        return attention_html(examples, head)
    raise UserError(f"{path}: an alignment is written as .png, .html or .json; choose one of them")


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
