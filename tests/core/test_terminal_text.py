"""No text obeys a terminal."""

import pytest

from foveal.core.terminal_text import decimals, escape_controls


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


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (2.30259, "2.303"),
        (-0.5, "-0.500"),
        (999_999.5, "999999.500"),
        (8.4255e18, "8.43e+18"),
        (-2e6, "-2e+06"),
    ],
)
def test_decimals(value: float, shown: str) -> None:
    assert decimals(value, 3) == shown


def test_decimals_of_what_is_not_finite() -> None:
    assert [decimals(float(value), 4) for value in ("inf", "-inf", "nan")] == ["inf", "-inf", "nan"]
