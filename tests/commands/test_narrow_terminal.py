"""A terminal without a width is taken as one of 80 columns."""

import pytest

from tests.support.command_line import run_command


@pytest.mark.parametrize("columns", ["0", "1"])
def test_no_width_is_no_reason_to_print_nothing(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert "Usage: foveal" in run_command("--help").out
