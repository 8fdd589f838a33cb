"""Steps 4, 5 and 7: trials with coarse, then with refined settings, while the budget lasts; then the best of
them with new seeds."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

from foveal.config.old_names import flatten
from foveal.core.errors import RunFailed
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.core.signals import SignalHandler
from foveal.core.terminal_text import counted, decimals
from foveal.inspection.curves.view import logged_training
from foveal.inspection.diagnosis.finding import Finding
from foveal.store.run import open_run
from foveal.studies.trials.process import train_in_process
from foveal.studies.trials.records import Record
from foveal.studies.trials.same_data import check_same_data
from foveal.studies.tune.changes import changed_settings
from foveal.studies.tune.checks import Checks
from foveal.studies.tune.choice import best_trial, recommended_trial
from foveal.studies.tune.journal import Journal, Phase, Planned, Trial
from foveal.studies.tune.lengths import COARSE_END, REFINED_END, choose_lengths
from foveal.studies.tune.rate_sweep import NEAR, factor_between
from foveal.studies.tune.regularizers import turned_off
from foveal.studies.tune.sampler import draw_settings
from foveal.studies.tune.space import Dimension, search_space, value_text
from foveal.studies.tune.subject import Subject

SEEDS = 2
"""New seeds with which the best settings are trained."""
MIN_SEEDS = 1
"""New seeds in any case, even if the refined trials have spent the budget."""
MIN_DRAWN = 3
"""Trials that are drawn in any case."""


class Search:
    """The trials of a study, each a run in a folder below that of the study."""

    def __init__(
        self,
        folder: Path,
        subject: Subject,
        checks: Checks,
        budget: float,
        only: tuple[str, ...],
        signals: SignalHandler,
        log: Log,
        progress: ProgressCallback,
    ):
        self.folder, self.subject, self.checks, self.budget = folder, subject, checks, budget
        self.signals, self.log, self.progress = signals, log, progress
        self.journal = Journal(folder / "journal.log")
        self.space = search_space(subject.config, checks.rates.best.lr, only)
        self.lengths = choose_lengths(checks.cost, budget)

    def run(self) -> None:
        """Run all trials, from where an earlier call was stopped.

        Raises: RunFailed: all trials failed.
        Raises: Interrupted: a signal came; what has begun goes on with the next call.
        """
        for trial in self.journal.trials("coarse", "refined", "seeds"):
            if trial.state == "begun":
                self._train(trial)
        self._coarse()
        self._refined()
        self._seeds()

    @property
    def spent(self) -> float:
        """The seconds that checks and trials took."""
        trials = self.journal.trials("coarse", "refined", "seeds")
        return self.checks.seconds + sum(trial.seconds for trial in trials)

    def best(self, phase: Phase) -> Trial:
        """Return the trial with the lowest held-out loss, or one as good with fewer changes.

        Raises: RunFailed: all trials failed.
        """
        trials = self.journal.trials(phase)
        best = best_trial(trials, self._regularization if phase == "refined" else {})
        if best is None:
            failed = [trial for trial in trials if trial.state == "failed"]
            why = f", the first with: {failed[0].error}" if failed else ""
            raise RunFailed(f"{self.folder}: no {phase} trial came to its end{why}")
        return best

    def recommended(self, new_seeds: Sequence[float]) -> Trial:
        """Return the trial whose settings are taken. `new_seeds` are the losses of the best ones with new
        seeds."""
        trials = self.journal.trials("refined")
        return recommended_trial(self.best("refined"), trials, self._regularization, new_seeds)

    @property
    def _regularization(self) -> dict[str, str]:
        """The preset's regularization that the given settings turn off, in trials too short for its gain."""
        if self.lengths.refined >= self.checks.cost.full_steps:
            return {}
        return turned_off(self.subject.config, self.subject.preset_settings)

    def repaired(self) -> dict[str, str]:
        """Return the settings by which the checks mend those that were given."""
        settings: dict[str, str] = {}
        if self.checks.initialization_is_at_fault:
            settings["model.initialization"] = "default"
        if self.checks.rates.is_off:
            settings["optimizer.lr"] = self._mended_lr()
        return settings

    def _mended_lr(self) -> str:
        """Return the preset's rate if it is near the best one of the sweep, else the latter.

        A sweep is short, which favors high rates.
        """
        preset, best = self.subject.preset_values.get("optimizer.lr"), self.checks.rates.best.lr
        is_near = preset is not None and factor_between(preset, best) < NEAR
        return value_text(preset) if is_near else f"{best:.3g}"

    def findings(self, trial: Trial) -> list[Finding]:
        """Return what the curves of a trial show."""
        run = open_run(self.folder / trial.name)
        assert run.log_units is not None
        return logged_training(run, run.log_units).findings

    def _coarse(self) -> None:
        planned = self._planned()
        if planned[0].settings:
            planned = [Planned("given", "as given", {}), *planned]
        for each in planned[len(self.journal.trials("coarse")) :]:
            self._train(self.journal.begin("coarse", each, self.lengths.coarse))
        fixed = self._fixed_settings()
        while self._fits("coarse", COARSE_END, len(planned) + MIN_DRAWN):
            settings = {**fixed, **draw_settings(self.space, (), self._seed("coarse"))}
            drawn = Planned("drawn", "drawn at random", settings)
            self._train(self.journal.begin("coarse", drawn, self.lengths.coarse))
            if len(self.journal.trials("coarse")) >= len(planned) + MIN_DRAWN:
                self.best("coarse")  # if all have failed, others would, too
        self.best("coarse")

    def _planned(self) -> list[Planned]:
        """Return what is trained in any case: the settings as given, mended if they are at fault, and the
        preset's."""
        mended, preset = self.repaired(), self.subject.preset_settings
        first = Planned("mended", "as given, mended by the checks", mended)
        planned = [first if mended else Planned("given", "as given", {})]
        if preset and preset != mended:
            planned.append(Planned("preset", f"as in the preset {self.subject.preset}", preset))
        return planned

    def _refined(self) -> None:
        while self._fits("refined", REFINED_END, len(self._planned())):
            self._train(self._next_refined(len(self.journal.trials("refined"))))
        self.best("refined")

    def _next_refined(self, number: int) -> Trial:
        steps, planned, coarse = self.lengths.refined, self._planned(), self.best("coarse")
        if coarse.settings not in [each.settings for each in planned]:
            reason = f"best of the coarse trials ({coarse.name})"
            planned.append(Planned(coarse.origin, reason, coarse.settings))
        if number < len(planned):
            return self.journal.begin("refined", planned[number], steps)
        best, tried = self.best("refined"), [trial.settings for trial in self.journal.trials("refined")]
        values = self.values(best)
        for finding in self.findings(best):
            changed = {**best.settings, **changed_settings(finding.name, values, self._numbers())}
            if changed not in tried:
                reason = f"{finding.name} in {best.name}"
                return self.journal.begin("refined", Planned("changed", reason, changed), steps)
        narrow = [dimension.around(values[dimension.name]) for dimension in self._numbers()]
        trials = self.journal.trials("refined")
        ended = [(self.values(each), each.loss) for each in trials if each.loss is not None]
        settings = {**best.settings, **draw_settings(narrow, ended, self._seed("refined"))}
        return self.journal.begin("refined", Planned("drawn", f"drawn around {best.name}", settings), steps)

    def _seeds(self) -> None:
        best, first = self.best("refined"), self.subject.config.training.seed
        while (done := len(self.journal.trials("seeds"))) < SEEDS and self._fits("seeds", 1.0, MIN_SEEDS):
            settings = {**best.settings, "training.seed": str(first + 1 + done)}
            planned = Planned("seed", f"{best.name} with another seed", settings)
            self._train(self.journal.begin("seeds", planned, self.lengths.refined))

    def values(self, trial: Trial) -> dict[str, Any]:
        """Return the values of the searched settings in a trial."""
        given: dict[str, Any] = dict(flatten(self.subject.config.model_dump()))
        keys = [key for dimension in self.space for key in dimension.keys]
        return {key: number_or_text(trial.settings.get(key, given[key])) for key in keys}

    def _seed(self, phase: Phase) -> int:
        """Return the seed of the next draw, which a resumed study does not repeat."""
        return self.subject.config.training.seed + len(self.journal.trials(phase))

    def _numbers(self) -> list[Dimension]:
        return [dimension for dimension in self.space if not dimension.choices]

    def _fixed_settings(self) -> dict[str, str]:
        """Return the mended settings that are not searched."""
        searched = {key for dimension in self.space for key in dimension.keys}
        mended = {**self.subject.preset_settings, **self.repaired()}
        return {key: value for key, value in mended.items() if key not in searched}

    def _check_same_data(self) -> None:
        """Check that all trials that ended have the same rows.

        Raises: UserError: the data have changed.
        """
        trials = self.journal.trials("coarse", "refined", "seeds")
        if runs := [self.folder / each.name for each in trials if each.state == "finished"]:
            check_same_data(runs)

    def _fits(self, phase: Phase, share: float, at_least: int) -> bool:
        """Return whether another trial of a phase fits in the budget, or is needed."""
        trials = self.journal.trials(phase)
        if len(trials) < at_least:
            return True
        steps = self.lengths.coarse if phase == "coarse" else self.lengths.refined
        expected = self.checks.cost.trial_seconds(steps)
        whole = [
            trial.seconds
            for trial in self.journal.trials("coarse", "refined", "seeds")
            if trial.state == "finished" and trial.steps == steps
        ]
        return self.spent + (max(whole) if whole else expected) <= share * self.budget

    def _train(self, trial: Trial) -> None:
        """Train a trial to its end, and note that."""
        if not trial.steps:  # the study was killed between the two lines that begin a trial
            self.journal.end(replace(trial, state="failed", error="the study was killed as it began"))
            return
        losses, trained = list[float](), [0.0]
        began, spent = monotonic(), self.spent

        def watch(record: Record) -> bool:
            self.progress(max(1, round(spent + monotonic() - began)), round(self.budget))
            trained[0] = record.get("seconds", trained[0])
            if record["kind"] != "evaluation" or record["loss"] is None:
                return False
            losses.append(record["loss"])
            return self.journal.is_worse_than_others(trial, record["step"], record["loss"])

        arguments = self.subject.arguments(trial.settings, trial.steps)
        end = train_in_process(self.folder / trial.name, arguments, self.signals, watch)
        loss = min(losses, default=None)
        state, error = end.state, end.error
        if state == "finished" and loss is None:
            state, error = "failed", "its held-out loss was never finite"
        ended = replace(
            trial, state=state, loss=loss, seconds=max(monotonic() - began, trained[0]), error=error
        )
        self.journal.end(ended)
        self._check_same_data()
        self.log(f"{ended.name}: {trial_result(ended)}")


def trial_result(trial: Trial) -> str:
    """Return the held-out loss of a trial, or why there is none, and then what was tried."""
    settings = " ".join(f"{key}={value}" for key, value in trial.settings.items())
    result = decimals(trial.loss, 4) if trial.loss is not None and trial.state != "failed" else "failed"
    ends = {"stopped": ", stopped as worse than others", "failed": f": {trial.error}"}.get(trial.state, "")
    tried = f"{trial.reason}: {settings}" if settings else trial.reason
    return f"{result} after {counted(trial.steps, 'step')}{ends}; {tried}"


def number_or_text(value: Any) -> Any:
    """Return a setting's value as a number, if it is one."""
    try:
        return float(value)
    except ValueError:
        return value
