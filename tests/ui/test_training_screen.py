"""What a person sees while training."""

import io
import time
from contextlib import redirect_stderr

import numpy as np
import pytest

from foveal.core.progress import SecondsLeft
from foveal.core.runtime import peak_memory
from foveal.store.plan import Plan
from foveal.ui import activity, training_screen
from foveal.ui.console import format_duration
from foveal.ui.training_screen import TrainingScreen

STEP = {"step": 4, "loss": 1.5, "tokens_per_second": 1234.0, "seconds": 2.5}


def step(left: SecondsLeft) -> dict[str, float]:
    return STEP | {"seconds_left": sum(left), "seconds_left_in_steps": left.steps}


def shown(text: str) -> list[str]:
    told = io.StringIO()
    with redirect_stderr(told):
        TrainingScreen(None, "tokens").on_sample(1, text)
    return told.getvalue().splitlines()


def test_samples_that_follow_at_once_are_not_shown_but_the_last_is(monkeypatch: pytest.MonkeyPatch) -> None:
    told, now = io.StringIO(), [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with redirect_stderr(told):
        with TrainingScreen(None, "tokens") as screen:
            for step, seconds in ((0, 0), (2, 1), (4, 1), (6, 5), (8, 1), (10, 1)):
                now[0] += seconds
                screen.on_sample(step, f"text {step}")
        screen.on_end({"reason": "budget"})
    assert [line.strip() for line in told.getvalue().splitlines()] == [
        *("step 0  before training", "text 0", "text 6", "text 10")
    ]


def test_a_long_preview_is_cut_on_both_sides() -> None:
    """The preview takes two lines of the screen, and both source and target stay readable."""
    source, target = "source " * 60, "target " * 60
    (line,) = shown(f"{source}-> {target}")
    assert len(line) <= 160
    first, second = line.strip().split(" -> ")
    assert first.endswith(" ...")
    assert second.endswith(" ...")
    assert source.startswith(first.removesuffix(" ..."))
    assert target.startswith(second.removesuffix(" ..."))
    assert min(len(first), len(second)) > 60


def test_an_evaluation_says_what_there_is_and_when_it_was_better() -> None:
    told = io.StringIO()
    with redirect_stderr(told):
        screen = TrainingScreen(None, "tokens")
        screen.on_evaluation({"step": 16, "loss": 0.5, "accuracy": 0.75, "best_step": 16})
        screen.on_evaluation({"step": 1032, "loss": 0.6, "bits_per_character": 1.5, "best_step": 16})
    assert told.getvalue().splitlines() == [
        "step 16  held out 0.5000 nats, accuracy 75.0 %",
        "step 1032  held out 0.6000 nats, 1.5000 bits per character  not better since step 16",
    ]


def test_durations() -> None:
    seconds = (0.0, 0.3, 1.2, 59.0, 125.0, 3725.0)
    assert [format_duration(one) for one in seconds] == ["0 s", "under 1 s", "1 s", "59 s", "2:05", "1:02:05"]


def test_what_fits_is_left_whole() -> None:
    lines = ["the cat -> " + "die Katze " * 12, "def f(x) -> int: return x -> y", "", "plain text"]
    assert shown("\n".join(lines)) == [f"    {line}" for line in lines]
    assert len(shown("line\n" * 9)) == 4
    (line,) = shown("no arrow " * 50)
    assert line.endswith(" ...")
    assert 140 < len(line) <= 160


def test_a_step_says_speed_memory_and_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_screen, "peak_memory", lambda: 2_340_000_000)
    told, shown = io.StringIO(), TrainingScreen(10.0, "tokens")
    monkeypatch.setattr(shown, "_last_line", -100.0)
    with redirect_stderr(told):
        shown.on_step(step(SecondsLeft(7.5, 4.0)))
    assert told.getvalue() == "step 4  loss 1.500  1,234 tokens/s  2.3 GB  12 s left\n"


def test_a_budget_that_a_busy_machine_overruns_says_so_while_it_happens() -> None:
    told, screen = io.StringIO(), TrainingScreen(100.0, "tokens")
    with redirect_stderr(told):
        screen.on_step(step(SecondsLeft(500.0, 0.0)))  # nothing is planned yet
        screen.on_plan(Plan(200, 100))
        for seconds_left in (97.0, 110.0, 150.0, 155.0, 300.0):
            screen.on_step(step(SecondsLeft(seconds_left, 50.0)))
    assert told.getvalue().splitlines() == [
        "slower than when the steps were planned: the budget of 1:40 becomes about "
        f"{minutes} (Ctrl-C keeps all that is trained)"
        for minutes in ("2:32", "5:02")
    ]


def test_memory_is_of_this_process() -> None:
    before = peak_memory()
    held = np.ones(1 << 25)
    assert held.nbytes < peak_memory() < before + 2 * held.nbytes


def test_a_trial_of_outputs_is_never_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a terminal after two seconds, as all work that takes longer."""

    def slow() -> float:
        time.sleep(0.2)
        return time.monotonic()

    monkeypatch.setattr(activity, "FIRST_LINE_SECONDS", 0.01)
    told = io.StringIO()
    with redirect_stderr(told):
        assert TrainingScreen(None, "tokens").try_outputs(slow) > 0
    assert told.getvalue().startswith("trying the test's outputs")
