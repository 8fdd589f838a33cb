"""The script that tries every part: its list follows the config, and a fall is known as one."""

from typing import Literal, get_args, get_origin

import pytest

from benchmarks.every.data import WRITERS
from benchmarks.every.parts import bases, trials, untried_settings
from benchmarks.every.trial import TIMED_OUT, Outcome
from foveal.models.network_registry import NETWORKS
from foveal.tasks.registry import all_tasks
from tests.support.trained_presets import trained_presets


@pytest.mark.slow
def test_every_preset_network_and_choice_has_a_trial_and_every_task_has_data() -> None:
    every = trials()
    names = {trial.name for trial in every}
    assert names >= {f"preset {name}" for name in trained_presets()} | {
        f"network {name}" for name in NETWORKS
    }
    tried = {setting for trial in every for setting in trial.settings}
    for key, (section, name) in {key: each for one in bases() for key, each in one.fields.items()}.items():
        annotation = type(section).model_fields[name].annotation
        if (
            key in ("task.name", "model.encoder.kind", *untried_settings())
            or get_origin(annotation) is not Literal
        ):
            continue
        missing = {f"{key}={choice}" for choice in get_args(annotation)} - tried
        assert len(missing) <= 1, f"only the default of {key} needs no trial"
    assert all_tasks().keys() == WRITERS.keys()


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [
        (Outcome(0, first=2.4, constant=2.3, last=2.0), ""),
        (Outcome(0, first=2.4, constant=2.3, last=2.3), "nothing learned"),
        (Outcome(0, first=9.0, constant=2.3, last=3.0), "diverged"),
        (Outcome(0, first=2.3, constant=2.3, last=float("nan")), "diverged"),
        (Outcome(0, first=2.3, constant=2.3, last=1.0, refused_steps=1), "diverged"),
        (Outcome(1, "10 consecutive steps gave numbers that are not finite"), "diverged"),
        (Outcome(1, "KeyError: 'a' (an error in Foveal itself: --debug shows where)"), "crash"),
        (Outcome(-11), "crash"),
        (Outcome(2, "model.encoder.stem=small does not fit"), "refused"),
        (Outcome(TIMED_OUT), "takes too long"),
    ],
)
def test_a_verdict_follows_from_exit_code_and_losses(outcome: Outcome, verdict: str) -> None:
    assert outcome.verdict == verdict
