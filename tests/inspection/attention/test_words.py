"""Alignments: pieces to words, and what the three kinds of file hold."""

import base64
import gzip
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

from foveal.core.errors import UserError
from foveal.inspection.attention.render import write_word_attention
from foveal.inspection.attention.words import (
    WordAttention,
    split_words,
    visible_text,
    word_attention,
)

HOSTILE = "</td></table><script>alert(1)</script>"


def example(rows: int = 3, columns: int = 4, heads: int = 2) -> WordAttention:
    weights = np.random.default_rng(0).dirichlet(np.full(columns, 0.3), (heads, rows))
    source = tuple(f"source{i}" for i in range(columns))
    return named(source, tuple(f"target{i}" for i in range(rows)), weights)


def named(source: tuple[str, ...], target: tuple[str, ...], weights: np.ndarray) -> WordAttention:
    """Its heads are those of a layer."""
    return WordAttention(source, target, weights, tuple(f"1.{1 + head}" for head in range(len(weights))))


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["The", " cat", "s", " sat", "."], ["The", "cats", "sat."]),
        (["The", "Ġcat", "s"], ["The", "cats"]),
        (["▁The", "▁cat", "s"], ["The", "cats"]),
        (["walk ", "around ", "left "], ["walk", "around", "left"]),
        (["two", " ", " ", "gaps"], ["two", "␣", "gaps"]),
        (["Haus", "es", "<stop>"], ["Hauses", "<stop>"]),
        (["<start>", "Haus", "es"], ["<start>", "Hauses"]),
        (list("a cat"), ["a", "␣", "c", "a", "t"]),
        (["ca", "t"], ["cat"]),
        (["我", "喜欢", "小", "猫", "."], ["我", "喜欢", "小", "猫."]),
        (["uno", "\n"], ["uno⏎"]),
        (["f", "ü".encode()[:1], "ü".encode()[1:], "r", " dich"], ["für", "dich"]),
        ([bytes([byte]) for byte in "für".encode()], ["f", "ü", "r"]),
        (["ganz", b" \xc3"], ["ganz", "\ufffd"]),
    ],
)
def test_words_from_pieces(pieces: list[str | bytes], expected: list[str]) -> None:
    assert list(split_words(pieces)[0]) == expected


def test_weights_are_summed_over_the_source_and_averaged_over_the_target() -> None:
    weights = np.array([[[0.1, 0.2, 0.3, 0.4], [0.5, 0.1, 0.1, 0.3], [0, 0, 1, 0]]])
    found = word_attention(["The", " cat", "s", " sat"], ["Kat", "zen", " sitzen"], weights)
    assert found.source == ("The", "cats", "sat")
    assert found.target == ("Katzen", "sitzen")
    np.testing.assert_allclose(found.weights, np.array([[[0.3, 0.35, 0.35], [0, 1, 0]]]))
    np.testing.assert_allclose(found.weights.sum(-1), 1)


def test_characters_keep_their_weights() -> None:
    given = example(3, 5).weights
    found = word_attention(list("ab cd"), list("xyz"), given)
    assert found.source == tuple("ab␣cd")
    assert (found.weights == given).all()


def test_nothing_to_align() -> None:
    with pytest.raises(
        UserError, match="no tokens in the source or the target, so there is nothing to align"
    ):
        word_attention([], ["a"], np.zeros((1, 1, 0)))


def test_json_has_words_and_weights_exactly(tmp_path: Path) -> None:
    one = named(("für", HOSTILE), ("你", '"\n'), example(2, 2).weights)
    write_word_attention(tmp_path / "a.json", [one, example()])
    first, second = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["examples"]
    assert (first["source"], first["target"]) == (["für", HOSTILE], ["你", '"\n'])
    assert first["heads"] == ["1.1", "1.2"]
    assert (np.array(first["weights"]) == one.weights).all()
    assert (np.array(second["weights"]) == example().weights).all()


def picture(path: Path) -> np.ndarray:
    """(height, width, 3) in 0 to 1."""
    return imread(io.BytesIO(path.read_bytes()))[:, :, :3]


def test_a_picture_shows_where_the_weight_is(tmp_path: Path) -> None:
    """A dark cell in the first row and the last column is to the upper right of one in the last, first."""
    for place, (row, column) in {"upper": (0, 5), "lower": (5, 0)}.items():
        weights = np.zeros((1, 6, 6))
        weights[0, row, column] = 1
        write_word_attention(tmp_path / f"{place}.png", [named(("w",) * 6, ("w",) * 6, weights)])
    upper, lower = (picture(tmp_path / f"{place}.png") for place in ("upper", "lower"))
    assert upper.shape == lower.shape
    rows, columns = np.nonzero((upper - lower).mean(-1) < -0.5)
    other_rows, other_columns = np.nonzero((upper - lower).mean(-1) > 0.5)
    assert rows.max() < other_rows.min()
    assert columns.min() > other_columns.max()
    assert len(rows) > 1000


def test_a_picture_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foveal.inspection.figures.compose.MAX_HEIGHT", 4.0)
    with pytest.raises(UserError, match=r"these 4 examples: a picture .* would be larger than 4 inches"):
        write_word_attention(tmp_path / "a.png", [example(2, 2)] * 4)


@pytest.mark.parametrize(
    "word",
    ["שלום", "مرحبا", "小猫", "👩‍👩‍👧", "$\\frac{a$", "x" * 300, "", HOSTILE, "\ufffd", "a\u0301", "नमस्ते"],
)
@pytest.mark.parametrize("suffix", ["png", "html", "json"])
def test_no_word_is_too_strange(word: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{suffix}"
    write_word_attention(path, [named((word, "b"), (word,), np.array([[[0.25, 0.75]]]))])
    assert path.stat().st_size > 0


def stored_panels(path: Path) -> list[dict[str, Any]]:
    """Return the headers of the panels that a page holds."""
    stored = re.search(r'id="payload-0">(.*?)</script>', path.read_text(encoding="utf-8"))
    assert stored is not None
    content = gzip.decompress(base64.b64decode(stored[1]))
    panels: list[dict[str, Any]] = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])[
        "panels"
    ]
    return panels


def test_a_page_is_made_of_the_payload_and_has_every_head(tmp_path: Path) -> None:
    given = [example(3, 4, heads=3), example(2, 2, heads=1)]
    write_word_attention(tmp_path / "a.html", given, head="1.1")
    shown, grid, single = stored_panels(tmp_path / "a.html")
    assert [panel["kind"] for panel in (shown, grid, single)] == ["heatmap", "heatmap-grid", "heatmap"]
    for panel, one in ((shown, given[0]), (single, given[1])):
        assert [axis["labels"] for axis in panel["axes"]] == [[*one.target], [*one.source]]
        assert panel["high"] == pytest.approx(one.weights[0].max())
    assert grid["axes"][1]["labels"] == [f"head {name}" for name in given[0].heads]
    assert [axis["labels"] for axis in grid["axes"][2:]] == [[*given[0].target], [*given[0].source]]
    assert grid["high"] == pytest.approx(given[0].weights.max())


def test_hostile_text_is_text(tmp_path: Path) -> None:
    strange = (HOSTILE, "'\" onmouseover=alert(1) x='", "&lt;b&gt;", "${alert(1)}")
    write_word_attention(tmp_path / "a.html", [named(strange, strange, np.full((2, 4, 4), 0.25))])
    assert stored_panels(tmp_path / "a.html")[0]["axes"][0]["labels"] == [*strange]
    assert not any(word in (tmp_path / "a.html").read_text(encoding="utf-8") for word in strange)


def test_what_cannot_be_written_is_one_plain_line(tmp_path: Path) -> None:
    path = tmp_path / "a.gif"
    with pytest.raises(UserError, match=r"a\.gif: an alignment is written as \.png, \.svg, \.pdf, \.html"):
        write_word_attention(path, [example()])
    with pytest.raises(UserError, match=r"a\.png: there are no examples to draw"):
        write_word_attention(tmp_path / "a.png", [])
    with pytest.raises(UserError, match=r"--head 2.1: there is no such head; there are 1.1, 1.2"):
        write_word_attention(tmp_path / "a.png", [example()], head="2.1")
    assert not list(tmp_path.iterdir())


def test_a_file_is_replaced_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    write_word_attention(path, [example()])
    before = path.read_bytes()
    monkeypatch.setattr(
        "foveal.store.durable.os.replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    with pytest.raises(KeyboardInterrupt):
        write_word_attention(path, [example(5, 5)])
    assert path.read_bytes() == before


def test_a_word_of_white_space_is_seen() -> None:
    words = (" ", "\n", "\t", "\r", "\x0b", "\xa0", "\u2003", "0.10 s")
    assert [visible_text(word) for word in words] == [
        "␣",
        "⏎",
        "⇥",
        "␍",
        r"\x0b",
        r"\xa0",
        r"\u2003",
        "0.10 s",
    ]
