"""What a person sees while training."""

import io
from contextlib import redirect_stderr

from foveal.commands.console import Screen


def shown(text: str) -> list[str]:
    told = io.StringIO()
    with redirect_stderr(told):
        Screen(None, "tokens").sample(1, text)
    return told.getvalue().splitlines()


def test_a_long_preview_is_cut_on_both_sides() -> None:
    """It takes two lines of a screen, and source and target can both be told."""
    source, target = "source " * 60, "target " * 60
    (line,) = shown(f"{source}-> {target}")
    assert len(line) <= 160
    first, second = line.strip().split(" -> ")
    assert first.endswith(" ...")
    assert second.endswith(" ...")
    assert source.startswith(first.removesuffix(" ..."))
    assert target.startswith(second.removesuffix(" ..."))
    assert min(len(first), len(second)) > 60


def test_what_fits_is_left_whole() -> None:
    lines = ["the cat -> " + "die Katze " * 12, "def f(x) -> int: return x -> y", "", "plain text"]
    assert shown("\n".join(lines)) == [f"    {line}" for line in lines]
    assert len(shown("line\n" * 9)) == 4
    (line,) = shown("no arrow " * 50)
    assert line.endswith(" ...")
    assert 140 < len(line) <= 160
