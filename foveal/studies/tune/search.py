"""Steps 4, 5 and 7: trials with coarse, then with refined settings, while the budget lasts; then the best of
them with new seeds."""

from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

from foveal.config.old_names import flatten
from foveal.core.errors import RunFailed
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.core.signals import SignalHandler
from foveal.inspection.curves.view import logged_training
from foveal.inspection.diagnosis.finding import Finding
from foveal.store.run import open_run
from foveal.studies.trials.process import train_in_process
from foveal.studies.trials.records import Record
from foveal.studies.trials.same_data import check_same_data
from foveal.studies.tune.changes import changed_settings
from foveal.studies.tune.checks import Checks
from foveal.studies.tune.choice import (
    NOTHING_MISSING,
    MissingRegularization,
    best_trial,
    missing_regularization,
    recommended_trial,
)
from foveal.studies.tune.journal import Journal, Phase, Planned, Trial
from foveal.studies.tune.lengths import COARSE_END, REFINED_END, choose_lengths
from foveal.studies.tune.planned import corrected_settings, planned_trials
from foveal.studies.tune.regularizers import turned_off
from foveal.studies.tune.sampler import draw_settings
from foveal.studies.tune.space import Dimension, number_or_text, search_space
from foveal.studies.tune.subject import Subject

SEEDS = 2
"""New seeds with which the best settings are trained."""
MIN_SEEDS = 1
"""New seeds in any case, even if the refined trials have spent the budget."""
MIN_DRAWN = 3
"""Trials that are drawn in any case."""
DRAWS = 20
"""Draws after which all settings of a space count as tried, as those of a few choices."""
SEED = "training.seed"


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
        best = best_trial(trials, self.missing if phase == "refined" else NOTHING_MISSING)
        if best is None:
            failed = [trial for trial in trials if trial.state == "failed"]
            why = f", the first with: {failed[0].error}" if failed else ""
            raise RunFailed(f"{self.folder}: no {phase} trial came to its end{why}")
        return best

    def recommended(self) -> Trial:
        """Return the trial whose settings are taken: the best one if new seeds confirm it."""
        best, trials = self.best("refined"), self.journal.trials("refined")
        return recommended_trial(best, trials, self.missing, self.new_seeds(best))

    def new_seeds(self, trial: Trial) -> tuple[float, ...]:
        """Return the losses of a trial's settings with new seeds, which nothing was chosen by."""
        ended = [each.loss for each in self._repeats(trial) if each.state == "finished"]
        return tuple(loss for loss in ended if loss is not None)

    @property
    def missing(self) -> MissingRegularization:
        """The preset's regularization that the given settings turn off."""
        settings = turned_off(self.subject.config, self.subject.preset_settings)
        return missing_regularization(settings, self.lengths.refined, self.checks.cost.full_steps)

    def findings(self, trial: Trial) -> list[Finding]:
        """Return what the curves of a trial show."""
        run = open_run(self.folder / trial.name)
        assert run.log_units is not None
        return logged_training(run, run.log_units).findings

    def _coarse(self) -> None:
        planned = planned_trials(self.subject, self.checks)
        if planned[0].settings:
            planned = [Planned("given", "as given", {}), *planned]
        for each in planned[len(self.journal.trials("coarse")) :]:
            self._train(self.journal.begin("coarse", each, self.lengths.coarse))
        while self._fits("coarse", COARSE_END, len(planned) + MIN_DRAWN):
            if (settings := self._drawn_at_random()) is None:
                break
            drawn = Planned("drawn", "drawn at random", settings)
            self._train(self.journal.begin("coarse", drawn, self.lengths.coarse))
            if len(self.journal.trials("coarse")) >= len(planned) + MIN_DRAWN:
                self.best("coarse")  # if all have failed, others would, too
        self.best("coarse")

    def _drawn_at_random(self) -> dict[str, str] | None:
        """Return settings that no coarse trial has; None if all are tried."""
        tried = [trial.settings for trial in self.journal.trials("coarse")]
        first, fixed = self._seed("coarse"), self._fixed_settings()
        seeds = (first + 1000 * number for number in range(DRAWS))
        draws = ({**fixed, **draw_settings(self.space, (), seed)} for seed in seeds)
        return next((settings for settings in draws if settings not in tried), None)

    def _refined(self) -> None:
        while self._fits("refined", REFINED_END, len(planned_trials(self.subject, self.checks))):
            trial = self._next_refined(len(self.journal.trials("refined")))
            if trial is None:
                break
            self._train(trial)
        self.best("refined")

    def _next_refined(self, number: int) -> Trial | None:
        """Begin the next refined trial. Return None if no number is searched, and all else is tried."""
        planned, coarse = planned_trials(self.subject, self.checks), self.best("coarse")
        steps = self.lengths.refined
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
        if not self._numbers():
            return None
        narrow = [dimension.around(values[dimension.name]) for dimension in self._numbers()]
        trials = self.journal.trials("refined")
        ended = [(self.values(each), each.loss) for each in trials if each.loss is not None]
        settings = {**best.settings, **draw_settings(narrow, ended, self._seed("refined"))}
        return self.journal.begin("refined", Planned("drawn", f"drawn around {best.name}", settings), steps)

    def _seeds(self) -> None:
        """Train the recommended settings with new seeds. If these don't confirm them, others are recommended,
        and trained with new seeds in turn."""
        first = self.subject.config.training.seed
        while (done := len(self._repeats(trial := self.recommended()))) < SEEDS:
            if done >= MIN_SEEDS and not self._fits("seeds", 1.0, 0):
                break
            settings = {**trial.settings, SEED: str(first + 1 + done)}
            planned = Planned("seed", f"{trial.name} with another seed", settings)
            self._train(self.journal.begin("seeds", planned, self.lengths.refined))

    def _repeats(self, trial: Trial) -> list[Trial]:
        """Return the trainings of a trial's settings with new seeds."""
        seeds = self.journal.trials("seeds")
        return [each for each in seeds if {**trial.settings, SEED: each.settings.get(SEED)} == each.settings]

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
        """Return the corrected settings that are not searched."""
        searched = {key for dimension in self.space for key in dimension.keys}
        corrected = {**self.subject.preset_settings, **corrected_settings(self.subject, self.checks)}
        return {key: value for key, value in corrected.items() if key not in searched}

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
            # The losses of new seeds are an estimate, which would be too low without the worse ones.
            is_chosen = trial.phase != "seeds"
            return is_chosen and self.journal.is_worse_than_others(trial, record["step"], record["loss"])

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
        self.log(f"{ended.name}: {ended.in_words}")
