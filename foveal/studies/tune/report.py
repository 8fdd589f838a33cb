"""A study for people, for programs, and as a page: the verdict, then its evidence, then the command."""

import shlex
from typing import TYPE_CHECKING, Any

from foveal.core.terminal_text import counted, decimals
from foveal.inspection.panels import Panel, Table
from foveal.inspection.payload import Payload
from foveal.studies.report_files import REPORTS
from foveal.studies.tune.figures import study_figures
from foveal.studies.tune.journal import Trial
from foveal.studies.tune.verdict import Unconfirmed
from foveal.ui.console import format_duration

if TYPE_CHECKING:  # whose methods return the report
    from foveal.studies.tune.tune import Tuning

COLUMNS = ("trial", "why", "settings", "steps", "held-out loss", "end")
PHASES = ("coarse", "refined")
CAVEAT = (
    "a loss is the lowest of the evaluations of a trial, since a training keeps the weights of that one. "
    "Settings are chosen by it, so it is a little too low for the chosen trial; new seeds are not chosen. "
    "Coarse trials are short, and short trainings favor high rates"
)


def tune_sections(tuning: "Tuning") -> list[str | list[tuple[str, str]]]:
    """Return the verdict, the evidence, and the command that trains with the recommended settings."""
    return [
        tuning.verdict.headline,
        _verdict_facts(tuning),
        "",
        [*_evidence(tuning), ("caveat", CAVEAT)],
        "",
        [(trial.name, trial.in_words) for trial in tuning.trials],
        "",
        [("report", str(tuning.folder / REPORTS[0])), ("train", shlex.join(tuning.verdict.command))],
    ]


def _verdict_facts(tuning: "Tuning") -> list[tuple[str, str]]:
    verdict = tuning.verdict
    facts = [(fault.setting, f"{fault.evidence}; take {fault.instead}") for fault in verdict.faults]
    settings = " ".join(f"{key}={value}" for key, value in verdict.winner.settings.items())
    whole = tuning.checks.cost.full_steps
    assert verdict.winner.loss is not None
    length = f"the lowest in {verdict.winner.steps:,} of the {whole:,} steps of a whole training"
    facts += [
        ("recommended", settings or "the settings as given"),
        ("held-out loss", f"{decimals(verdict.winner.loss, 4)}, {length}; {verdict.spread.words}"),
    ]
    if verdict.unconfirmed is not None:
        facts.append(("not taken", _unconfirmed(verdict.unconfirmed)))
    if verdict.untried is not None:
        more = "; there was no time to try it longer: give a larger --budget"
        facts.append(("not tried longer", f"{verdict.untried.name}: {verdict.untried.in_words}{more}"))
    if verdict.start is not None and verdict.start != verdict.winner:
        assert verdict.start.loss is not None
        loss = f"{decimals(verdict.start.loss, 4)}, the lowest in {verdict.start.steps:,} steps"
        facts.append(("as given", loss))
    return facts


def _unconfirmed(best: Unconfirmed) -> str:
    trial = best.trial
    settings = " ".join(f"{key}={value}" for key, value in trial.settings.items())
    assert trial.loss is not None
    return f"{settings} with {decimals(trial.loss, 4)} in {trial.name}, but {best.spread.words}"


def _evidence(tuning: "Tuning") -> list[tuple[str, str]]:
    checks, verdict = tuning.checks, tuning.verdict
    curves = [f"{finding.name}: {finding.evidence}; {finding.advice}" for finding in verdict.findings]
    trials = {phase: [trial for trial in tuning.trials if trial.phase == phase] for phase in PHASES}
    return [
        ("1 first loss", checks.initial.meaning),
        ("2 overfit", checks.overfit.meaning),
        ("3 rates", checks.rates.meaning),
        ("4 coarse", _trials_in_words(trials["coarse"], tuning.lengths.coarse)),
        ("5 refined", _trials_in_words(trials["refined"], tuning.lengths.refined)),
        ("6 curves", "; ".join(curves) or f"nothing stands out in those of {verdict.winner.name}"),
        ("7 again", f"until the budget of {format_duration(tuning.budget)} was spent"),
    ]


def _trials_in_words(trials: list[Trial], steps: int) -> str:
    ended = [trial.loss for trial in trials if trial.state == "finished" and trial.loss is not None]
    failed = [trial for trial in trials if trial.state == "failed"]
    stopped = sum(trial.state == "stopped" for trial in trials)
    words = f"{counted(len(trials), 'trial')} of {counted(steps, 'step')}"
    if len(ended) == 1:
        words += f", held-out loss {decimals(ended[0], 4)}"
    elif ended:
        words += (
            f", {len(ended)} ended with losses from {decimals(min(ended), 4)} to {decimals(max(ended), 4)}"
        )
    words += f", {stopped} stopped as worse than others" if stopped else ""
    return words + (f", {len(failed)} failed, the first with: {failed[0].error}" if failed else "")


def tune_json(tuning: "Tuning") -> dict[str, Any]:
    """Return the study for programs."""
    verdict, checks = tuning.verdict, tuning.checks
    return {
        "run": str(tuning.folder),
        "data": tuning.subject.data,
        "preset": tuning.subject.preset,
        "verdict": verdict.headline,
        "faults": [vars(fault) for fault in verdict.faults],
        "recommended": dict(verdict.winner.settings),
        "not_taken": None if verdict.unconfirmed is None else _not_taken(verdict.unconfirmed),
        "not_tried_longer": None if verdict.untried is None else verdict.untried.name,
        "held_out_loss": verdict.winner.loss,
        "held_out_losses_of_new_seeds": [*verdict.spread.losses],
        "command": [*verdict.command],
        "initial_loss": vars(checks.initial),
        "overfits": checks.overfit.holds,
        "rates": [{"lr": rate.lr, "end": rate.end} for rate in checks.rates.rates],
        "search_space": [dimension.to_json() for dimension in tuning.space],
        "trials": [vars(trial) for trial in tuning.trials],
        "findings": [finding.to_json() for finding in verdict.findings],
    }


def _not_taken(best: Unconfirmed) -> dict[str, Any]:
    return {
        "trial": best.trial.name,
        "settings": dict(best.trial.settings),
        "held_out_loss": best.trial.loss,
        "held_out_losses_of_new_seeds": [*best.spread.losses],
    }


def tune_payload(tuning: "Tuning") -> Payload:
    """Return the study as tables and pictures."""
    faults = tuple(
        (each.setting, each.problem, each.evidence, each.instead) for each in tuning.verdict.faults
    )
    panels: list[Panel] = [Table("", ("fault", "problem", "evidence", "instead"), faults)] if faults else []
    panels += [
        Table("", ("step", "result"), tuple(_evidence(tuning))),
        Table("trials", COLUMNS, tuple(map(_row, tuning.trials))),
        *study_figures(tuning),
    ]
    facts = [*_verdict_facts(tuning), ("train", shlex.join(tuning.verdict.command))]
    return Payload(
        "tune",
        tuning.subject.data,
        tuning.verdict.headline,
        tuple(panels),
        CAVEAT,
        "exact",
        tuple(facts),
        tune_json(tuning),
    )


def _row(trial: Trial) -> tuple[str, ...]:
    settings = " ".join(f"{key}={value}" for key, value in trial.settings.items())
    loss = "" if trial.loss is None else decimals(trial.loss, 4)
    result = trial.error or ("" if trial.state == "finished" else trial.state)
    return trial.name, trial.reason, settings, f"{trial.steps:,}", loss, result
