"""Silent blocks of the console."""

import pytest

from foveal.ui.console import STDERR, log, silence


def test_blocks_of_several_threads_end_in_any_order(capsys: pytest.CaptureFixture[str]) -> None:
    first, second, loud = silence(True), silence(True), silence(False)
    for block in (first, second, loud):
        block.__enter__()
    first.__exit__(None, None, None)
    log("not shown")
    loud.__exit__(None, None, None)
    assert STDERR.quiet
    second.__exit__(None, None, None)
    log("shown")
    assert capsys.readouterr().err == "shown\n"
