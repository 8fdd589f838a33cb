"""No text obeys a terminal."""

import pytest

from foveal.core.terminal_text import escape_controls


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, é, 日本語, 🙂\n\ttab", "plain, é, 日本語, 🙂\n\ttab"),
        ("\x1b[2J", r"\x1b[2J"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("a\rb\x08\x00\x7f", r"a\rb\x08\x00\x7f"),
        ("\x9b31m", r"\x9b31m"),
        ("gpj.\u202eexe", r"gpj.\u202eexe"),
        ("\ud800\udfff", r"\ud800\udfff"),
    ],
)
def test_what_a_terminal_would_obey_is_shown(text: str, shown: str) -> None:
    assert escape_controls(text) == shown
    assert escape_controls(shown) == shown
