"""What the study says: the settings at fault, the settings to take, and what they are worth."""

from dataclasses import dataclass
from statistics import fmean

from foveal.core.terminal_text import decimals
from foveal.inspection.diagnosis.finding import Finding
from foveal.inspection.diagnosis.held_out import OVERFITTING
from foveal.studies.tune.checks import Checks
from foveal.studies.tune.choice import AS_GOOD
from foveal.studies.tune.journal import Trial
from foveal.studies.tune.planned import mended_settings
from foveal.studies.tune.rate_sweep import RateSweep, factor_between
from foveal.studies.tune.regularizers import is_regularizer, regularizers_off, turned_off
from foveal.studies.tune.search import Search

NOTICEABLE = 0.02
"""The share by which a loss is lower than chance makes it, where no seeds say so."""


@dataclass(frozen=True)
class Fault:
    """A given setting that keeps the model from learning, with its evidence."""

    setting: str
    problem: str
    evidence: str
    instead: str


@dataclass(frozen=True)
class Spread:
    """The held-out losses of the best settings with new seeds, which nothing was chosen by."""

    losses: tuple[float, ...]

    @property
    def words(self) -> str:
        """The losses in words."""
        if not self.losses:
            return "no training with a new seed came to its end"
        if len(self.losses) == 1:
            return f"{decimals(self.losses[0], 4)} with a new seed"
        limits = f"from {decimals(min(self.losses), 4)} to {decimals(max(self.losses), 4)}"
        return f"{decimals(fmean(self.losses), 4)} on average with {len(self.losses)} new seeds, {limits}"


@dataclass(frozen=True)
class Unconfirmed:
    """The best trial, if it is not the winner: with new seeds its settings end no lower than the winner."""

    trial: Trial
    spread: Spread


@dataclass(frozen=True)
class Verdict:
    """The result of a study."""

    faults: tuple[Fault, ...]
    winner: Trial
    unconfirmed: Unconfirmed | None
    start: Trial | None
    """The longest trial with the settings as given that came to its end; None if there is none."""
    spread: Spread
    """That of the winner."""
    command: tuple[str, ...]
    """The command that trains with the recommended settings."""
    findings: tuple[Finding, ...]
    """What the curves of the recommended settings show."""
    untried: Trial | None
    """The best coarse trial, if there was no time for a refined one with its settings."""

    @property
    def headline(self) -> str:
        """The result in one line."""
        if self.faults:
            return "; ".join(f"{fault.setting}: {fault.problem}" for fault in self.faults)
        if not self.winner.settings:
            others = "all others that were tried" if self.untried is None else "all others of as many steps"
            return f"the settings as given are as good as {others}"
        changed = " ".join(f"{key}={value}" for key, value in self.winner.settings.items())
        if self.start is None or self.start.steps != self.winner.steps:
            return f"no fault in the settings as given, of which no training as long ended; take {changed}"
        if _is_lower(self.winner, self.start, self.spread):
            return f"no fault in the settings as given; better are {changed}"
        return f"no fault in the settings as given; {changed} end lower by less than seeds differ"


def make_verdict(search: Search) -> Verdict:
    """Return what the trials of a finished search say."""
    given = [each for each in search.journal.trials("coarse", "refined") if each.origin == "given"]
    best, winner, coarse = search.best("refined"), search.recommended(), search.best("coarse")
    refined = [each.settings for each in search.journal.trials("refined")]
    spread = Spread(search.new_seeds(winner))
    return Verdict(
        tuple(_faults(search, winner, spread)),
        winner,
        None if best == winner else Unconfirmed(best, Spread(search.new_seeds(best))),
        next((each for each in reversed(given) if each.state == "finished"), None),
        spread,
        tuple(search.subject.command(winner.settings)),
        tuple(search.findings(winner)),
        None if coarse.settings in refined else coarse,
    )


def _faults(search: Search, winner: Trial, spread: Spread) -> list[Fault]:
    checks, faults = search.checks, list[Fault]()
    if checks.initialization_is_at_fault:
        faults.append(_initialization(search, checks))
    if checks.rates.is_off:
        lr = winner.settings.get("optimizer.lr", mended_settings(search.subject, checks)["optimizer.lr"])
        faults.append(_rate(checks.rates, lr))
    if regularization := _regularization(search, winner, spread):
        faults.append(regularization)
    return faults


def _rate(sweep: RateSweep, lr: str) -> Fault:
    """Return how far the given rate is from the recommended one, which need not be the best of the sweep."""
    factor, direction = factor_between(sweep.set_lr, float(lr)), "high" if sweep.set_lr > float(lr) else "low"
    problem = f"{factor:,.0f} times too {direction}"
    return Fault(f"optimizer.lr={sweep.set_lr:.3g}", problem, sweep.meaning, f"optimizer.lr={lr}")


def _initialization(search: Search, checks: Checks) -> Fault:
    assert checks.by_default is not None
    own, by_default = checks.sweep, checks.by_default.sweep
    too_high = checks.initial.is_too_high
    first, usual_first = (decimals(each.measured, 3) for each in (checks.initial, checks.by_default.initial))
    evidence = (
        f"the first loss is {first}, and {usual_first} with the usual weights; at the best of all rates "
        f"it falls to {decimals(own.best.end, 3)} in {len(own.best.losses)} iterations, and from the usual "
        f"weights to {decimals(by_default.best.end, 3)}"
    )
    value = search.subject.config.model.initialization
    problem = "first weights that are too large" if too_high else "first weights from which little is learned"
    return Fault(f"model.initialization={value}", problem, evidence, "model.initialization=default")


def _regularization(search: Search, winner: Trial, spread: Spread) -> Fault | None:
    """Return whether the given regularization is at fault: the preset's ends lower, or is taken since it pays
    in longer trainings, or there is none and the curves show overfitting."""
    subject, refined = search.subject, search.journal.trials("refined")
    ended = [each for each in refined if each.state == "finished"]
    own = next((each for each in ended if each.origin in ("given", "mended")), None)
    if own is None or own.loss is None:
        return None
    findings = [each for each in search.findings(own) if each.name == OVERFITTING]
    for preset in [each for each in ended if each.origin == "preset"]:
        keys = _differing(preset.settings, own.settings)
        if not keys or not all(map(is_regularizer, keys)) or preset.loss is None:
            continue
        is_better = preset.loss < own.loss and bool(findings or _is_lower(preset, own, spread))
        is_taken = not is_better and winner == preset
        if is_better or is_taken:
            instead = " ".join(f"{key}={preset.settings[key]}" for key in keys)
            losses = f"{decimals(own.loss, 4)}, and {decimals(preset.loss, 4)} with {instead}"
            evidence = [
                f"with the rest alike the held-out loss is {losses}",
                *(each.evidence for each in findings),
            ]
            if is_taken:
                whole = search.checks.cost.full_steps
                evidence.append(
                    f"that is as good after {own.steps:,} of the {whole:,} steps of a whole training, and "
                    "regularization pays in longer trainings"
                )
            given = " ".join(f"{key}={subject.given[key]}" for key in keys)
            is_off = {*keys} <= {*turned_off(subject.config, subject.preset_settings)}
            problem = "no regularization" if is_off else "regularization with which less is learned"
            return Fault(given, problem, "; ".join(evidence), instead)
    if findings and not regularizers_off(subject.config):
        return Fault("no regularization", "the model overfits", findings[0].evidence, findings[0].advice)
    return None


def _differing(settings: dict[str, str], others: dict[str, str]) -> list[str]:
    return [key for key in {**settings, **others} if settings.get(key) != others.get(key)]


def _is_lower(trial: Trial, other: Trial, spread: Spread) -> bool:
    """Return whether a trial ends lower than another by more than the same settings differ between seeds."""
    if trial.loss is None or other.loss is None:
        return False
    noise = (
        max(spread.losses) - min(spread.losses) if len(spread.losses) > 1 else NOTICEABLE * abs(other.loss)
    )
    return other.loss - trial.loss > max(noise, AS_GOOD * abs(other.loss))
