"""The trials of a study in Optuna's journal, a file that a killed study finds again."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from foveal.core.extras import require
from foveal.core.terminal_text import counted, decimals

if TYPE_CHECKING:  # an extra, which is imported when a study begins
    import optuna
    from optuna.trial import FrozenTrial

Phase = Literal["coarse", "refined", "seeds"]
Origin = Literal["given", "corrected", "preset", "drawn", "changed", "seed"]
"""Where the settings of a trial come from: those given, those corrected by the checks, the preset's, drawn
ones, those that a diagnosis has changed, or the best with another seed."""
SPARED = 1 / 3
"""The first part of a trial, in which it is not stopped for being worse than others."""
State = Literal["begun", "finished", "stopped", "failed"]
STATES: dict[str, State] = {
    "COMPLETE": "finished",
    "PRUNED": "stopped",
    "FAIL": "failed",
    "RUNNING": "begun",
    "WAITING": "begun",
}
"""Our states of a trial by Optuna's."""


@dataclass(frozen=True)
class Trial:
    """A training of the study."""

    phase: Phase
    number: int
    origin: Origin
    reason: str
    """Why these settings are tried."""
    settings: dict[str, str]
    """The settings in place of those that were given."""
    steps: int
    state: State = "begun"
    """A stopped trial was worse than others."""
    loss: float | None = None
    """The lowest held-out loss."""
    seconds: float = 0.0
    error: str = ""

    @property
    def name(self) -> str:
        """The name of the folder of its run."""
        return f"{self.phase}-{self.number}"

    @property
    def in_words(self) -> str:
        """The held-out loss, or why there is none, and then what was tried."""
        settings = " ".join(f"{key}={value}" for key, value in self.settings.items())
        tried = f"{self.reason}: {settings}" if settings else self.reason
        if self.loss is None or self.state == "failed":
            return f"failed: {self.error}; {tried}"
        end = ", stopped as worse than others" if self.state == "stopped" else ""
        return f"{decimals(self.loss, 4)}, the lowest in {counted(self.steps, 'step')}{end}; {tried}"


class Planned(NamedTuple):
    """A trial that has not begun."""

    origin: Origin
    reason: str
    settings: dict[str, str]


class Journal:
    """The trials of one study, written as they begin and end."""

    def __init__(self, path: Path):
        require("optuna", "foveal tune")
        import optuna
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._storage = JournalStorage(JournalFileBackend(str(path)))

    def trials(self, *phases: Phase) -> list[Trial]:
        """Return the trials of some phases, in order."""
        return [_from_optuna(phase, each) for phase in phases for each in self._study(phase).trials]

    def begin(self, phase: Phase, planned: Planned, steps: int) -> Trial:
        """Begin a trial with given settings."""
        return self._begin(phase, self._study(phase).ask(), planned, steps)

    def is_worse_than_others(self, trial: Trial, step: int, loss: float) -> bool:
        """Note a held-out loss. Return whether it is above the median of earlier trials at that step."""
        import optuna

        study = self._study(trial.phase, optuna.pruners.MedianPruner(2, round(SPARED * trial.steps)))
        frozen = study.trials[trial.number]
        if step in frozen.intermediate_values:
            return False
        running = optuna.trial.Trial(study, frozen._trial_id)
        running.report(loss, step)
        return bool(running.should_prune())

    def end(self, trial: Trial) -> None:
        """Note how a trial has ended."""
        from optuna.trial import TrialState

        study = self._study(trial.phase)
        frozen = study.trials[trial.number]
        for name, value in (("seconds", trial.seconds), ("error", trial.error), ("loss", trial.loss)):
            self._storage.set_trial_user_attr(frozen._trial_id, name, value)
        state = TrialState[next(key for key, name in STATES.items() if name == trial.state)]
        values = [trial.loss] if state is TrialState.COMPLETE and trial.loss is not None else None
        self._storage.set_trial_state_values(frozen._trial_id, state, values)

    def _begin(self, phase: Phase, drawn: "optuna.trial.Trial", planned: Planned, steps: int) -> Trial:
        for name, value in (*planned._asdict().items(), ("steps", steps)):
            drawn.set_user_attr(name, value)
        return Trial(phase, drawn.number, *planned, steps)

    def _study(self, phase: Phase, pruner: "optuna.pruners.MedianPruner | None" = None) -> "optuna.Study":
        import optuna

        return optuna.create_study(
            storage=self._storage, study_name=phase, pruner=pruner, load_if_exists=True
        )


def _from_optuna(phase: Phase, frozen: "FrozenTrial") -> Trial:
    facts: dict[str, Any] = frozen.user_attrs
    known = {name: facts[name] for name in ("loss", "seconds", "error") if name in facts}
    origin, reason = facts.get("origin", "drawn"), facts.get("reason", "")
    settings, steps = facts.get("settings", {}), facts.get("steps", 0)
    return Trial(phase, frozen.number, origin, reason, settings, steps, STATES[frozen.state.name], **known)
