"""The seven steps: first loss, overfitting a few rows, sweep of rates, coarse trials, refined trials, their
curves, and again while the budget lasts (Karpathy 2019, "A recipe for training neural networks")."""

from dataclasses import dataclass
from pathlib import Path

from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.core.signals import SignalHandler
from foveal.inspection.payload import Payload
from foveal.studies.study_result import StudyResult
from foveal.studies.tune.checks import Checks, FirstModel, read_checks, run_checks, write_checks
from foveal.studies.tune.journal import Trial
from foveal.studies.tune.lengths import CHECKS_END, Lengths
from foveal.studies.tune.report import tune_payload, tune_sections
from foveal.studies.tune.search import Search
from foveal.studies.tune.space import Dimension
from foveal.studies.tune.subject import Subject
from foveal.studies.tune.verdict import Verdict, make_verdict
from foveal.ui.console import Sections


@dataclass(frozen=True, repr=False)
class Tuning(StudyResult):
    """A study of the settings of a training."""

    folder: Path
    subject: Subject
    budget: float
    checks: Checks
    space: tuple[Dimension, ...]
    lengths: Lengths
    trials: tuple[Trial, ...]
    verdict: Verdict

    def sections(self) -> Sections:
        """Return the verdict, the evidence, and the command that trains."""
        return tune_sections(self)

    def payload(self) -> Payload:
        """Return the report."""
        return tune_payload(self)


def tune(
    folder: Path,
    subject: Subject,
    first: FirstModel | None,
    budget: float,
    only: tuple[str, ...],
    signals: SignalHandler,
    log: Log,
    progress: ProgressCallback,
) -> Tuning:
    """Make a study, or go on with one whose checks are written, which needs no `first`.

    Raises: RunFailed: all trials failed.
    Raises: Interrupted: a signal came; the study goes on with the next call.
    """

    def report(index: int, total: int) -> None:
        signals.poll()
        progress(max(1, round(CHECKS_END * budget * index / total)), round(budget))

    if first is not None:
        checks = run_checks(first, CHECKS_END * budget, report)
        write_checks(folder, checks)
        log(f"1 first loss: {checks.initial.meaning}")
        log(f"2 overfit: {checks.overfit.meaning}")
        log(f"3 rates: {checks.rates.meaning}")
    else:
        checks = read_checks(folder)
    search = Search(folder, subject, checks, budget, only, signals, log, progress)
    search.run()
    trials = tuple(search.journal.trials("coarse", "refined", "seeds"))
    return Tuning(folder, subject, budget, checks, search.space, search.lengths, trials, make_verdict(search))
