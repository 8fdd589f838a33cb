"""The score of a run on held-out data."""

from typing import Any, NamedTuple

from foveal.api.few_shot import PAIR_COLUMNS
from foveal.api.training.report import evaluate_and_score, evaluation_report
from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.core.terminal_text import counted
from foveal.data.core.split_data import ContentHash
from foveal.generation.few_shot import FewShotPrompt
from foveal.metrics.report import Report
from foveal.tasks.baseline import Baseline
from foveal.tasks.session import Session
from foveal.tasks.shapes.answered_rows import OTHER_DATA
from foveal.tasks.shapes.few_shot import read_pairs, score_answers
from foveal.training.evaluate import slots_of_streams
from foveal.ui.activity import Activity
from foveal.ui.console import log
from foveal.ui.progress_bar import ProgressBar

SIZE_KEYS = (
    "examples",
    "images",
    "frames",
    "steps",
    "words",
    "characters",
    "tokens",
    "source_tokens",
    "target_tokens",
)
"""The facts about a split that are its sizes, in the order in which they are printed."""


def calibration_json(session: Session) -> dict[str, float]:
    """Return the temperature of a calibrated run."""
    return {} if session.temperature == 1 else {"temperature": session.temperature}


class RunEvaluation(NamedTuple):
    """The name of the data, their sizes, the loss with its metrics, and a report on the outputs."""

    split: str
    sizes: dict[str, int]
    scores: dict[str, float]
    report: Report | None
    trained_on: bool
    """Whether the run was trained on rows of the data."""
    baseline: Baseline | None = None
    """The score of a copy of the source, beside those of answers to few-shot prompts."""

    def to_json(self, session: Session) -> dict[str, Any]:
        """Return the scores and the report for programs."""
        more = {} if self.report is None else self.report.to_json()
        more |= {"trained_on": True} if self.trained_on else {}
        more |= {} if self.baseline is None else {"baseline": self.baseline.to_json()}
        result = {"run": str(session.run.path), "split": self.split}
        return result | self.sizes | self.scores | more | calibration_json(session)


def evaluate_run(session: Session, data: str | None) -> RunEvaluation:
    """Score a run on its held-out data, or on all of `data`. Ranks that share the task have the same scores.

    Raises: UserError: the run has no held-out data, or this rank sees other data than the main rank.
    """
    with Activity(f"reading {data or session.run.path}"):
        part, split, facts = session.held_out(data, "to measure it on")
    together = session.task.together
    together.check_same(facts, f"{data or session.run.path}: {OTHER_DATA}")
    batches, ranks = session.task.eval_batches(part), together.world.size
    slots = slots_of_streams(batches, session.task.config.training.slots)
    if slots is not None and slots % ranks:
        cut = f"{counted(slots, 'slot')}, which {counted(ranks, 'rank')} can't share"
        log(f"the text is evaluated in {cut}: each evaluates all")
    scores, report = evaluate_and_score(session.task, session.objective, part, split)
    sizes = {key: facts[key] for key in SIZE_KEYS if key in facts}
    trained_on = bool(facts.get("trained_on"))
    return RunEvaluation(split, sizes, scores, report, trained_on)


def evaluate_shots(
    session: Session, data: str | None, shots: FewShotPrompt, columns: DataConfig = PAIR_COLUMNS
) -> RunEvaluation:
    """Score the answers of a language model to pairs of texts, each behind the examples of a prompt.

    Raises: UserError: there are no pairs, this rank sees others than the main rank, or a prompt is too long.
    """
    if data is None:
        raise UserError("--shots scores answers to pairs: name a table of a source and a target, as DATA")
    with Activity(f"reading {data}"):
        rows = read_pairs(data, columns, log)
    task, facts = session.task, {"examples": len(rows), "shots": len(shots.examples)}
    content = ContentHash()
    content.add(row.fields for row in rows)
    task.together.check_same(content.hexdigest(), f"{data}: {OTHER_DATA}")
    with ProgressBar("answered", before=f"answering {data}") as progress:
        result, baseline = score_answers(task, str(session.run.path), rows, shots, progress)
    return RunEvaluation(data, facts, {}, evaluation_report(result), False, baseline)
