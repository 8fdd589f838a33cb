"""The trials that a study has in any case: the settings as given, and what the checks and the preset say."""

from foveal.studies.tune.checks import Checks
from foveal.studies.tune.journal import Planned
from foveal.studies.tune.rate_sweep import NEAR, factor_between
from foveal.studies.tune.regularizers import turned_off
from foveal.studies.tune.space import value_text
from foveal.studies.tune.subject import Subject


def planned_trials(subject: Subject, checks: Checks) -> list[Planned]:
    """Return the settings as given, corrected if they are at fault; the preset's; and where no regularization
    is given, the first with that of the preset."""
    corrected, preset = corrected_settings(subject, checks), subject.preset_settings
    first = Planned("corrected", "as given, corrected by the checks", corrected)
    planned = [first if corrected else Planned("given", "as given", {})]
    if preset and preset != corrected:
        planned.append(Planned("preset", f"as in the preset {subject.preset}", preset))
    regularized = {**corrected, **turned_off(subject.config, preset)}
    if regularized not in (corrected, preset):
        reason = f"{planned[0].reason}, with the regularization of the preset"
        planned.append(Planned("preset", reason, regularized))
    return planned


def corrected_settings(subject: Subject, checks: Checks) -> dict[str, str]:
    """Return the settings by which the checks correct those that were given."""
    settings: dict[str, str] = {}
    if checks.initialization_is_at_fault:
        settings["model.initialization"] = "default"
    if checks.rates.is_off:
        settings["optimizer.lr"] = _corrected_lr(subject, checks)
    return settings


def _corrected_lr(subject: Subject, checks: Checks) -> str:
    """Return the preset's rate if it is near the best one of the sweep, else the latter.

    A sweep is short, which favors high rates.
    """
    preset, best = subject.preset_values.get("optimizer.lr"), checks.rates.best.lr
    is_near = preset is not None and factor_between(preset, best) < NEAR
    return value_text(preset) if is_near else f"{best:.3g}"
