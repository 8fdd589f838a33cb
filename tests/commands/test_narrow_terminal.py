"""On a terminal of any width lines are wrapped between words. Without a width there are 80 columns."""

import io

import pytest
from rich.text import Text

from foveal.config import preset_names
from foveal.ui import console
from foveal.ui.console import SafeConsole
from tests.support.command_line import run_command

PROSE = "only 13 examples: 13 of 13 right is consistent with an accuracy of 77 %; hold out more (--test)"
COMMAND = "foveal inspect runs/reviews-text-classification-1 confusion --data other.csv --out confusion.png"
PATH = "a/very/long/path/that/is/longer/than/a/narrow/terminal/" * 3
TABLE = "score           value        95 % interval      n    another column"


@pytest.mark.parametrize("columns", ["0", "1"])
def test_no_width_is_no_reason_to_print_nothing(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert "Usage: foveal" in run_command("--help").out


def terminal(width: int) -> SafeConsole:
    return SafeConsole(file=io.StringIO(), width=width, force_terminal=True, color_system=None)


def shown(screen: SafeConsole) -> list[str]:
    assert isinstance(screen.file, io.StringIO)
    return [line.rstrip() for line in screen.file.getvalue().splitlines()]


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("text", [PROSE, PATH, f"{PROSE} {PATH} {PROSE}", TABLE, "猫 " * 90])
def test_lines_are_wrapped_between_words(width: int, text: str) -> None:
    screen = terminal(width)
    screen.print_wrapped(Text(f"{text}\n\n{text}", style="dim"))
    lines = shown(screen)
    assert " ".join(lines).split() == [*text.split(), *text.split()]
    assert all(Text(line).cell_len <= width or len(line.split()) == 1 for line in lines)


@pytest.mark.parametrize("width", [40, 80])
def test_values_stay_aligned_and_commands_whole(width: int) -> None:
    screen = terminal(width)
    console.print_facts([("what", PROSE), ("next", COMMAND)], screen)
    lines = shown(screen)
    assert lines[-1] == f"next  {COMMAND}"
    assert all(line.startswith(" " * 6) and line[6] != " " for line in lines[1:-1])


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize(
    ("before", "command", "after"),
    [
        (f"{PROSE}: ", COMMAND, ""),
        (
            f"{PROSE}; ",
            "foveal predict 'runs/my; run' --text \"it's (good), I think\"",
            "; or give more rows of it",
        ),
        ("two readings: ", "foveal train a.en,b.de --task translation", " or foveal train c --task tagging"),
        (f"{PROSE} (", "foveal generate runs/notes-demo-1 --help --temperature 0.8", ")"),
    ],
)
def test_commands_in_a_sentence_stay_whole(width: int, before: str, command: str, after: str) -> None:
    screen = terminal(width)
    screen.print_wrapped(f"{before}{command}{after}")
    lines = shown(screen)
    assert any(command in line for line in lines)
    assert " ".join(lines).split() == f"{before}{command}{after}".split()
    assert all(Text(line).cell_len <= width or "foveal " in line for line in lines)


def test_no_line_is_wrapped_elsewhere() -> None:
    screen = SafeConsole(file=io.StringIO(), width=40)
    screen.print_wrapped(PROSE)
    assert shown(screen) == [PROSE]


@pytest.mark.parametrize(("width", "columns"), [(40, 1), (60, 2), (80, 3), (200, 5)])
def test_columns_that_do_not_fit_are_left_out(
    width: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = terminal(width)
    monkeypatch.setattr("foveal.commands.models.STDOUT", screen)
    assert run_command("models").code == 0
    lines = shown(screen)
    assert len(lines[0].split()) == columns
    assert "…" not in "".join(lines)
    assert {line.split()[0] for line in lines if line} >= {*preset_names()}
