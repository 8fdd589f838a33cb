"""What the study says: the settings at fault, the settings to take, and what they are worth."""

from dataclasses import dataclass
from statistics import fmean

from foveal.core.terminal_text import decimals
from foveal.inspection.diagnosis.finding import Finding
from foveal.inspection.diagnosis.held_out import OVERFITTING
from foveal.studies.tune.checks import Checks
from foveal.studies.tune.choice import AS_GOOD
from foveal.studies.tune.journal import Trial
from foveal.studies.tune.planned import corrected_settings
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
        lr = winner.settings.get("optimizer.lr", corrected_settings(search.subject, checks)["optimizer.lr"])
        faults.append(_rate(checks.rates, lr))
    if beside_preset := _beside_preset(search, winner, spread):
        faults.append(beside_preset)
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


def _beside_preset(search: Search, winner: Trial, spread: Spread) -> Fault | None:
    """Return which of the given settings are at fault beside the preset's: with these, all else alike, a
    trial ends lower, or there is no regularization and the curves show overfitting."""
    refined = search.journal.trials("refined")
    ended = [each for each in refined if each.state == "finished" and each.loss is not None]
    own = next((each for each in ended if each.origin in ("given", "corrected")), None)
    if own is None:
        return None
    overfitting = [each for each in search.findings(own) if each.name == OVERFITTING]
    by_preset = [(each, _differing(each.settings, own.settings)) for each in ended if each.origin == "preset"]
    for preset, keys in sorted(by_preset, key=lambda each: len(each[1])):
        if not keys:
            continue
        if all(map(is_regularizer, keys)):
            fault = _regularization(search, own, preset, keys, overfitting, winner, spread)
        else:
            fault = _other_settings(search, own, preset, keys, spread)
        if fault is not None:
            return fault
    if overfitting and not regularizers_off(search.subject.config):
        return Fault(
            "no regularization", "the model overfits", overfitting[0].evidence, overfitting[0].advice
        )
    return None


def _regularization(
    search: Search,
    own: Trial,
    preset: Trial,
    keys: list[str],
    overfitting: list[Finding],
    winner: Trial,
    spread: Spread,
) -> Fault | None:
    """Return the fault of the given regularization: the preset's ends lower, or is taken since it pays in
    longer trainings."""
    is_better = _is_lower(preset, own, spread) or bool(overfitting and _ends_lower(preset, own))
    is_taken = not is_better and winner == preset
    if not (is_better or is_taken):
        return None
    evidence = [_losses(own, preset, keys), *(each.evidence for each in overfitting)]
    if is_taken:
        whole = search.checks.cost.full_steps
        evidence.append(
            f"in {own.steps:,} of the {whole:,} steps of a whole training a loss up to "
            f"{search.missing.share:.0%} higher is as good, since regularization pays in longer trainings"
        )
    is_off = {*keys} <= {*turned_off(search.subject.config, search.subject.preset_settings)}
    problem = "no regularization" if is_off else "regularization with which less is learned"
    return Fault(_given(search, keys), problem, "; ".join(evidence), _named(preset, keys))


def _other_settings(
    search: Search, own: Trial, preset: Trial, keys: list[str], spread: Spread
) -> Fault | None:
    """Return the fault of given settings with which less is learned than with the preset's."""
    if any(key in own.settings for key in keys) or not _is_lower(preset, own, spread):
        return None
    problem = "less is learned than with the preset's"
    return Fault(_given(search, keys), problem, _losses(own, preset, keys), _named(preset, keys))


def _given(search: Search, keys: list[str]) -> str:
    return " ".join(f"{key}={search.subject.given[key]}" for key in keys)


def _named(trial: Trial, keys: list[str]) -> str:
    return " ".join(f"{key}={trial.settings[key]}" for key in keys)


def _losses(own: Trial, preset: Trial, keys: list[str]) -> str:
    assert own.loss is not None
    assert preset.loss is not None
    losses = f"{decimals(own.loss, 4)}, and {decimals(preset.loss, 4)} with {_named(preset, keys)}"
    return f"with the rest alike the held-out loss is {losses}"


def _differing(settings: dict[str, str], others: dict[str, str]) -> list[str]:
    return [key for key in {**settings, **others} if settings.get(key) != others.get(key)]


def _ends_lower(trial: Trial, other: Trial) -> bool:
    return trial.loss is not None and other.loss is not None and trial.loss < other.loss


def _is_lower(trial: Trial, other: Trial, spread: Spread) -> bool:
    """Return whether a trial ends lower than another by more than the same settings differ between seeds."""
    if trial.loss is None or other.loss is None:
        return False
    noise = (
        max(spread.losses) - min(spread.losses) if len(spread.losses) > 1 else NOTICEABLE * abs(other.loss)
    )
    return other.loss - trial.loss > max(noise, AS_GOOD * abs(other.loss))
