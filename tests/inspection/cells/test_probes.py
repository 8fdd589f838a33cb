"""The probes of texts that are short enough to count in."""

import numpy as np
import pytest

from foveal.core.errors import UserError
from foveal.inspection.cells.probes import PROBES, choose_probes

CODE = 'if a:\n    b(["x)"], 1)  # it\n\nc'


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("position in line", "ab\n\nc", [1, 2, 0, 0, 1]),
        ("characters to the line's end", "ab\n\nc", [2, 1, 0, 0, 1]),
        ("position in sentence", "a. b!", [1, 0, 1, 2, 0]),
        ("position in sentence", "a? b", [1, 0, 1, 2]),
        ("position in word", "to a,é", [1, 2, 0, 1, 0, 1]),
        ("indentation", "a\n  b\n \n\tc", [0, 0, 2, 2, 2, 2, 2, 2, 1, 1]),
        ("bracket depth", "(a[b])(\n\n)", [1, 1, 2, 2, 1, 0, 1, 1, 0, 0]),
        ("quotes", 'a"b"c"\n\nd', [0, 1, 1, 0, 0, 1, 1, 0, 0]),
        ("quotes", "“a”", [1, 1, 0]),
        ("word in capitals", "AB Ab", [1, 1, 0, 0, 0]),
        ("markup", "a<b>c", [0, 1, 1, 1, 0]),
        ("line that ends in a colon", "a:\nb:c", [1, 1, 0, 0, 0, 0]),
        ("vowel", "Abe", [1, 0, 1]),
    ],
)
def test_probe(name, text, expected):
    assert PROBES[name](text).tolist() == expected


def test_code():
    inside = {
        name: "".join(letter for letter, label in zip(CODE, PROBES[name](CODE), strict=True) if label)
        for name in ("quote or comment", "comment", "if statement", "bracket depth", "indentation")
    }
    assert inside["quote or comment"] == '"x)"# it'
    assert inside["comment"] == "# it"
    assert inside["if statement"] == "if a"
    assert inside["indentation"] == '    b(["x)"], 1)  # it\n\n'
    assert PROBES["bracket depth"]('f("a")')[-1] == 0


@pytest.mark.parametrize("text", ["", "\n", "😀 שלום\r\ne\u0301", "((((", "'''", '"\\'])
@pytest.mark.parametrize("name", list(PROBES))
def test_one_number_for_each_character(name, text):
    labels = PROBES[name](text)
    assert labels.shape == (len(text),)
    assert np.isfinite(labels).all()


def test_choice():
    assert list(choose_probes("quotes")) == ["quotes"]
    assert choose_probes("/[0-9]+/")["/[0-9]+/"]("a12").tolist() == [0, 1, 1]
    with pytest.raises(UserError, match="no such probe; use a regular expression"):
        choose_probes("quote")
    with pytest.raises(UserError, match="no regular expression"):
        choose_probes("/(/")
