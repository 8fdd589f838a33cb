"""The trials of a study, with trainings that are made up: phases, budget, failures, and a study that goes
on."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foveal.config import Config
from foveal.core.errors import RunFailed
from foveal.core.signals import Interrupted, SignalHandler
from foveal.inspection.diagnosis.finding import Finding
from foveal.studies.trials.process import TrialEnd
from foveal.studies.tune import search as search_module
from foveal.studies.tune.changes import changed_settings
from foveal.studies.tune.checks import Checks, Cost
from foveal.studies.tune.initial_loss import InitialLoss
from foveal.studies.tune.journal import Journal, Planned
from foveal.studies.tune.overfit import Overfit
from foveal.studies.tune.rate_sweep import RateSweep, SweptRate
from foveal.studies.tune.report import tune_json
from foveal.studies.tune.search import Search
from foveal.studies.tune.space import Dimension, search_space
from foveal.studies.tune.subject import Subject
from foveal.studies.tune.tune import Tuning
from foveal.studies.tune.verdict import make_verdict
from foveal.tasks.config import load_config

CONFIG = load_config("lstm", ["optimizer.lr=0.3", "model.dropout=0.0"])
COST = Cost(
    start_seconds=0.4, step_seconds=0.01, evaluation_seconds=0.1, full_steps=2000, steps_per_epoch=100.0
)
BUDGET = 60.0
FINISHED, DISK_FULL = TrialEnd("finished"), TrialEnd("failed", "disk full")
KILLED = TrialEnd("failed", "its process was ended by SIGKILL")
PHASES = {"coarse": "4 coarse", "refined": "5 refined"}
Loss = Callable[[Mapping[str, str]], float]


def subject(config: Config = CONFIG, **preset_values: Any) -> Subject:
    given = {"optimizer.lr": "0.3", "model.dropout": "0.0"}
    values = {key.replace("__", "."): value for key, value in preset_values.items()}
    return Subject("notes.txt", ("--model", "lstm"), given, config, "lstm", values, "3m")


def checks(best: float = 0.003) -> Checks:
    lowest = SweptRate(1e-5, (4.0, 4.0))
    rates = [lowest, *(SweptRate(lr, (4.0, 1.0 + abs(math.log10(lr / best)))) for lr in sorted({best, 0.3}))]
    learned = Overfit(8, best, (4.0, 0.1), (), ())
    return Checks(InitialLoss(4.0, 4.0), learned, RateSweep(0.3, tuple(rates)), None, COST, 10.0)


def bowl(settings: Mapping[str, str]) -> float:
    """Return a loss that is lowest at a rate of 0.003 and a dropout of 0.2."""
    lr, dropout = float(settings.get("optimizer.lr", 0.3)), float(settings.get("model.dropout", 0.0))
    return 1.0 + 0.1 * math.log10(lr / 0.003) ** 2 + (dropout - 0.2) ** 2


def without_gain(worse: float) -> Loss:
    """Return a loss that dropout makes a little worse, and any other rate than 0.003 much worse."""

    def loss(settings: Mapping[str, str]) -> float:
        lr, dropout = float(settings.get("optimizer.lr", 0.3)), float(settings.get("model.dropout", 0.0))
        return 1.0 + worse * (dropout > 0) + 0.5 * (lr != 0.003)

    return loss


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Search]:
    """Return searches in one folder, whose trainings have a made-up loss."""
    clock = [0.0]
    monkeypatch.setattr(search_module, "monotonic", lambda: clock[0])
    monkeypatch.setattr(Search, "findings", lambda self, trial: [])
    monkeypatch.setattr(search_module, "check_same_data", lambda runs: None)

    def make(
        loss: Loss = bowl,
        end: Callable[[str], TrialEnd] = lambda trial: FINISHED,
        budget: float = BUDGET,
        slowness: float = 1.0,
        best: float = 0.003,
        config: Config = CONFIG,
        only: tuple[str, ...] = (),
        **preset: Any,
    ) -> Search:
        def train(path: Path, arguments: list[str], signals: SignalHandler, watch: Any) -> TrialEnd:
            settings = dict(word.split("=", 1) for word in arguments if "=" in word)
            steps = int(settings["training.budget"].removesuffix("steps"))
            for part in range(1, 13):
                clock[0] += slowness * COST.trial_seconds(steps) / 12
                record = {"kind": "evaluation", "step": steps * part // 12, "loss": loss(settings) + 1 / part}
                if end(path.name) == FINISHED and watch(record):
                    return TrialEnd("stopped")
            return end(path.name)

        monkeypatch.setattr(search_module, "train_in_process", train)
        arguments = (
            subject(config, **preset),
            checks(best),
            budget,
            only,
            SignalHandler(),
            lambda line: None,
            lambda done, all_: None,
        )
        return Search(tmp_path, *arguments)

    return make


def test_a_study_corrects_the_rate_and_finds_settings_near_the_best(study):
    search = study()
    search.run()
    coarse, refined, seeds = (search.journal.trials(phase) for phase in ("coarse", "refined", "seeds"))
    assert [trial.origin for trial in coarse[:2]] == ["given", "corrected"]
    assert {trial.origin for trial in coarse[2:]} == {"drawn"}
    assert refined[0].settings == {"optimizer.lr": "0.003"}
    assert len(refined) >= 3
    assert [trial.settings["training.seed"] for trial in seeds] == ["1", "2"]
    assert (search.best("refined").loss or 9) < bowl({}) + 1 / 12
    verdict = make_verdict(search)
    assert [fault.setting for fault in verdict.faults] == ["optimizer.lr=0.3"]
    lr = float(verdict.winner.settings["optimizer.lr"])
    assert verdict.faults[0].problem == f"{0.3 / lr:,.0f} times too high"
    assert len(verdict.spread.losses) == 2


def test_the_budget_is_kept(study):
    search = study()
    search.run()
    longest = max(trial.seconds for trial in search.journal.trials("coarse", "refined", "seeds"))
    assert 0.6 * BUDGET < search.spent < BUDGET + longest


def test_the_preset_is_tried_and_its_regularization_is_named(study):
    search = study(model__dropout=0.2, optimizer__lr=0.003)
    search.run()
    assert "preset" in [trial.origin for trial in search.journal.trials("refined")]
    verdict = make_verdict(search)
    assert [fault.setting for fault in verdict.faults] == ["optimizer.lr=0.3", "model.dropout=0.0"]
    assert verdict.faults[1].instead == "model.dropout=0.2"
    assert verdict.command[-1] == "training.budget=3m"


@pytest.mark.parametrize(("worse", "is_taken"), [(0.012, True), (0.2, False)])
def test_regularization_that_is_missing_is_taken_where_short_trials_hardly_differ(study, worse, is_taken):
    """Its gain comes later in a training; where little is lost in a trial, it is taken."""

    search = study(without_gain(worse), model__dropout=0.2, optimizer__lr=0.003)
    search.run()
    verdict = make_verdict(search)
    assert (verdict.winner.origin == "preset") is is_taken
    assert ("model.dropout=0.0" in [fault.setting for fault in verdict.faults]) is is_taken
    assert ("model.dropout=0.2" in verdict.command) is is_taken
    if is_taken:
        assert verdict.faults[-1].problem == "no regularization"
        assert "of the 2,000 steps of a whole training a loss up to " in verdict.faults[-1].evidence


def test_missing_regularization_is_named_beside_a_rate_that_is_not_the_presets(study):
    search = study(model__dropout=0.2, optimizer__lr=0.2)
    search.run()
    faults = make_verdict(search).faults
    assert [fault.setting for fault in faults] == ["optimizer.lr=0.3", "model.dropout=0.0"]
    assert faults[1].instead == "model.dropout=0.2"


def test_given_settings_with_which_less_is_learned_than_with_the_presets_are_named(study):
    """As first weights that are too large, in a model whose norms hide that from the first loss."""

    def loss(settings: Mapping[str, str]) -> float:
        return 1.75 if settings["model.initialization"] == "default" else 2.9

    given = {"optimizer.lr": "0.003", "model.initialization": "1"}
    config = load_config("attention", [f"{key}={value}" for key, value in given.items()])
    search = study(loss, config=config, model__initialization="default")
    search.subject = replace(search.subject, given=given)
    search.checks = replace(search.checks, sweep=replace(search.checks.sweep, set_lr=0.003))
    search.run()
    verdict = make_verdict(search)
    assert verdict.headline == "model.initialization=1: less is learned than with the preset's"
    assert verdict.faults[0].instead == "model.initialization=default"
    assert "the held-out loss is 2.9833, and 1.8333 with model.initialization=default" in (
        verdict.faults[0].evidence
    )


def test_settings_that_new_seeds_refute_are_not_taken_and_those_taken_get_new_seeds(study, tmp_path):
    """Each loss with a new seed stands beside the settings that it was measured with."""

    def luck(settings: Mapping[str, str]) -> float:
        is_drawn = settings["optimizer.lr"] not in ("0.3", "0.003")
        return 1.0 + is_drawn * (0.5 if "training.seed" in settings else -0.2)

    search = study(luck)
    search.run()
    verdict = make_verdict(search)
    refuted = verdict.unconfirmed
    assert refuted is not None
    assert (verdict.winner.origin, refuted.trial.origin) == ("corrected", "drawn")
    assert verdict.spread.losses == pytest.approx([1 + 1 / 12] * len(verdict.spread.losses))
    assert verdict.spread.losses
    assert refuted.spread.losses == pytest.approx([1.5 + 1 / 12] * len(refuted.spread.losses))
    trials = search.journal.trials("coarse", "refined", "seeds")
    tuning = Tuning(
        tmp_path, search.subject, BUDGET, search.checks, search.space, search.lengths, tuple(trials), verdict
    )
    table = tune_json(tuning)
    assert table["recommended"] == verdict.winner.settings
    assert table["held_out_losses_of_new_seeds"] == [*verdict.spread.losses]
    assert table["not_taken"]["settings"] == refuted.trial.settings
    assert table["not_taken"]["held_out_losses_of_new_seeds"] == [*refuted.spread.losses]
    lines = [line for line in str(tuning).splitlines() if line.startswith(("held-out loss", "not taken"))]
    assert [("1.083" in line, "1.583" in line) for line in lines] == [(True, False), (False, True)]


def test_settings_that_there_was_no_time_to_try_longer_are_named(study, tmp_path):
    search = study(best=0.3, slowness=10)
    search.run()
    verdict, coarse = make_verdict(search), search.best("coarse")
    assert verdict.headline == "the settings as given are as good as all others of as many steps"
    assert (verdict.untried, coarse.origin) == (coarse, "drawn")
    trials = tuple(search.journal.trials("coarse", "refined", "seeds"))
    facts = search.space, search.lengths, trials, verdict
    text = str(Tuning(tmp_path, search.subject, BUDGET, search.checks, *facts))
    assert "no time to try it longer: give a larger --budget" in text


def test_settings_without_a_training_as_long_are_not_called_worse(study):
    search = study(best=0.3, end=lambda trial: DISK_FULL if trial == "refined-0" else FINISHED)
    search.run()
    headline = make_verdict(search).headline
    assert headline.startswith("no fault in the settings as given, of which no training as long ended; take ")


def test_a_search_of_choices_alone_ends_when_all_are_tried(study):
    config = load_config("lstm", ["model.initialization=0.5"])
    search = study(lambda settings: 1.0, budget=50 * BUDGET, config=config, only=("model.initialization",))
    search.run()
    trials = search.journal.trials("coarse", "refined")
    for phase in ("coarse", "refined"):
        tried = [str(trial.settings) for trial in trials if trial.phase == phase]
        assert len(tried) == len({*tried})
    drawn = {trial.settings["model.initialization"] for trial in trials if trial.origin == "drawn"}
    assert drawn == {"default", "kaiming", "xavier"}


def test_in_whole_trainings_regularization_has_to_show_its_gain(study):
    search = study(
        without_gain(0.012),
        budget=9 * COST.trial_seconds(COST.full_steps),
        model__dropout=0.2,
        optimizer__lr=0.003,
    )
    assert search.lengths.refined == COST.full_steps
    search.run()
    assert make_verdict(search).winner.origin == "corrected"


def test_a_rate_is_as_far_off_as_the_recommended_one_says(study):
    search = study(loss=lambda settings: 1.0, optimizer__lr=0.006)
    search.run()
    (fault,) = make_verdict(search).faults
    assert (fault.problem, fault.instead) == ("50 times too high", "optimizer.lr=0.006")
    assert "0.003 is the lowest rate at which the loss falls fast" in fault.evidence
    assert "optimizer.lr=0.3 is 100 times higher: its loss ends" in fault.evidence


def test_worse_trials_are_stopped(study):
    search = study()
    search.run()
    assert "stopped" in [trial.state for trial in search.journal.trials("coarse")]


def test_no_training_with_a_new_seed_is_stopped_as_worse(study, monkeypatch):
    """The third is worse than the median of two others, one of which has settings that are not taken."""
    monkeypatch.setattr(search_module, "MIN_SEEDS", 2)

    def luck(settings: Mapping[str, str]) -> float:
        is_drawn, is_new = settings["optimizer.lr"] not in ("0.3", "0.003"), "training.seed" in settings
        return 1.0 + is_new * (1.0 - 0.5 * is_drawn) - 0.2 * (is_drawn and not is_new)

    search = study(luck)
    search.run()
    seeds = search.journal.trials("seeds")
    assert [trial.state for trial in seeds] == ["finished"] * 3
    assert (seeds[0].loss or 0) < (seeds[-1].loss or 0)


def test_fewer_changes_are_chosen_among_equals(study):
    search = study(loss=lambda settings: 1.0)
    search.run()
    assert make_verdict(search).winner.settings == {}


def test_if_all_trials_fail_the_first_error_is_said(study):
    search = study(end=lambda trial: DISK_FULL)
    with pytest.raises(RunFailed, match="no coarse trial came to its end, the first with: disk full"):
        search.run()


@pytest.mark.parametrize(
    ("name", "end"), [("coarse-0", DISK_FULL), ("coarse-2", KILLED), ("refined-1", KILLED)]
)
def test_a_failed_trial_is_reported_and_does_not_end_the_study(study, tmp_path, name, end):
    search = study(end=lambda trial: end if trial == name else FINISHED)
    search.run()
    trials, verdict = search.journal.trials("coarse", "refined", "seeds"), make_verdict(search)
    assert [(trial.name, trial.error) for trial in trials if trial.state == "failed"] == [(name, end.error)]
    assert verdict.winner.name != name
    assert (verdict.winner.loss or 9) < bowl({}) + 1 / 12
    assert len(verdict.spread.losses) == 2
    facts = search.space, search.lengths, tuple(trials), verdict
    tuning = Tuning(tmp_path, search.subject, BUDGET, search.checks, *facts)
    lines = {line.split("  ")[0]: line for line in str(tuning).splitlines()}
    assert str(tuning).startswith(f"{verdict.headline}\n")
    assert f"1 failed, the first with: {end.error}" in lines[PHASES[name.partition("-")[0]]]
    assert f": {end.error}; " in lines[name]


def test_a_new_seed_is_trained_even_if_refined_trials_have_spent_the_budget(study):
    search = study(slowness=10)
    search.run()
    assert search.spent > BUDGET
    assert len(make_verdict(search).spread.losses) == 1


def test_a_study_that_was_stopped_goes_on_with_other_draws(study, monkeypatch):
    whole, seen = study(), 0
    train = search_module.train_in_process  # type: ignore[attr-defined]

    def stop_after_five(*arguments: Any) -> TrialEnd:
        nonlocal seen
        seen += 1
        if seen > 5:
            raise Interrupted(2)
        return train(*arguments)

    monkeypatch.setattr(search_module, "train_in_process", stop_after_five)
    with pytest.raises(Interrupted):
        whole.run()
    begun = whole.journal.trials("coarse", "refined")
    assert [trial.state for trial in begun].count("begun") == 1
    again = study()
    again.run()
    trials = again.journal.trials("coarse", "refined", "seeds")
    assert all(trial.state != "begun" for trial in trials)
    assert [trial.settings for trial in trials[: len(begun)]] == [trial.settings for trial in begun]
    drawn = [str(trial.settings) for trial in trials if trial.origin == "drawn" and trial.phase == "coarse"]
    assert len({*drawn}) == len(drawn)


def test_a_trial_whose_beginning_was_not_written_counts_as_failed(study, tmp_path):
    study().journal._study("coarse").ask()
    search = study()
    search.run()
    assert search.journal.trials("coarse")[0].error == "the study was killed as it began"


@pytest.mark.parametrize(
    ("finding", "changed"),
    [
        ("overfitting", {"model.dropout": "0.3", "optimizer.weight_decay": "0.3"}),
        ("rate too high", {"optimizer.lr": "0.00333"}),
        ("not converged", {"optimizer.lr": "0.02"}),
        ("leak", {}),
    ],
)
def test_curves_change_the_settings_that_they_speak_of(finding, changed):
    values = {"optimizer.lr": 0.01, "model.dropout": 0.2, "optimizer.weight_decay": 0.1}
    assert changed_settings(finding, values, search_space(CONFIG, 0.01, ())) == changed


def test_a_diagnosis_leads_to_the_next_trial(study, monkeypatch):
    found = Finding("overfitting", 1, "the held-out loss rose", "", "")
    monkeypatch.setattr(Search, "findings", lambda self, trial: [found])
    search = study()
    search.run()
    changed = [trial for trial in search.journal.trials("refined") if trial.origin == "changed"]
    assert changed
    assert changed[0].reason.startswith("overfitting in refined-")


def test_a_journal_is_read_by_another_process(tmp_path):
    first = Journal(tmp_path / "journal.log")
    trial = first.begin("coarse", Planned("given", "as given", {"optimizer.lr": "0.1"}), 50)
    assert Journal(tmp_path / "journal.log").trials("coarse") == [trial]
    narrow = Dimension(("optimizer.lr",), 1e-3, 1.0, True).around(0.01)
    assert (narrow.low, narrow.high) == pytest.approx((0.01 / 3, 0.03))


def test_a_lower_loss_of_one_seed_is_no_fault(study):
    search = study(model__dropout=0.01, optimizer__lr=0.003)
    search.run()
    assert [fault.setting for fault in make_verdict(search).faults] == ["optimizer.lr=0.3"]


def test_all_failing_is_said_soon(study):
    search = study(end=lambda trial: DISK_FULL, budget=10 * BUDGET)
    with pytest.raises(RunFailed):
        search.run()
    assert len(search.journal.trials("coarse")) <= 6
