"""The common part of `train` and `resume`: training to the end, evaluation, curves and a summary."""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from foveal.api.training.parts import TrainingParts, make_objective, with_whole_model
from foveal.api.training.summary import print_summary, shell_command
from foveal.core.callbacks import Callback
from foveal.core.runtime import release_freed_memory
from foveal.core.signals import Interrupted, SignalHandler, TrainingInterrupted
from foveal.distributed.world import ONE_PROCESS, World
from foveal.inspection.curves.log_records import LoggedTraining
from foveal.inspection.curves.panels import curves_payload
from foveal.inspection.files import write_payload
from foveal.inspection.histograms.measure import layer_probe
from foveal.metrics.report import Report, make_report
from foveal.store.cache import shorten_unpacked_paths
from foveal.store.checkpoint_list import list_checkpoints
from foveal.store.scores import write_scores
from foveal.tasks.base import TOKEN, Task
from foveal.tasks.results import EvaluationResult, LabelsByRow
from foveal.tasks.warm_start import load_run_weights
from foveal.training.agreement import Agreement
from foveal.training.callback_registry import make_callbacks
from foveal.training.callbacks import CallbackList
from foveal.training.evaluate import evaluate
from foveal.training.plan import parse_budget
from foveal.training.protocols import Batches, Objective
from foveal.training.time_left import FinalTest
from foveal.training.trainer import FinishedError, Trainer
from foveal.ui.activity import Activity
from foveal.ui.progress_bar import ProgressBar
from foveal.ui.training_screen import TrainingScreen


def ignore_result(result: dict[str, Any]) -> None:
    """Do nothing with the scores of a training, which are printed in words as well."""


def train_and_report(
    parts: TrainingParts,
    signals: SignalHandler,
    on_result: Callable[[dict[str, Any]], None],
    callbacks: Iterable[Any] = (),
    world: World = ONE_PROCESS,
) -> None:
    """Train a run from its last checkpoint to its end. Then evaluate it, print scores, call `on_result` with
    them, and draw its curves. `callbacks` are called meanwhile. The other ranks of the `world` follow.

    The curves come last, so that no damaged log costs the scores: a finished run without curves was stopped
    before its report, so the report is made now.

    Raises: UserError: the log of the run is damaged, so it has no curves.
    Raises: CallbackFailed: a callback raised an exception; a checkpoint was saved.
    """
    run = parts.run
    all_callbacks = CallbackList([*callbacks, *make_callbacks(run.config.training)])
    with all_callbacks.running():
        screen, trainer = _make_trainer(parts, all_callbacks, world)
        try:
            with screen:
                try:
                    trainer.run(signals)
                except FinishedError:
                    if run.curves.exists() or not trainer.state.counters.step:
                        raise
            parts, objective = trained_model(parts, trainer)
            _report(parts, objective, trainer, on_result, all_callbacks, Agreement(world, signals))
        except Interrupted as stop:
            step = f" at step {trainer.state.counters.step:,}; "
            saved = (
                "its last checkpoint stays" if list_checkpoints(run.checkpoints) else "nothing is saved yet"
            )
            saved = saved if signals.urgent else "everything is saved"
            raise TrainingInterrupted(
                stop.number, f"{step}{saved}; go on with: {shell_command('resume', run.path)}"
            ) from None


def _make_trainer(
    parts: TrainingParts, callbacks: CallbackList, world: World
) -> tuple[TrainingScreen, Trainer]:
    """Return the screen, which is the first of the callbacks, and the trainer."""
    task, data, tested = parts.task, parts.data, parts.tested
    objective = make_objective(parts)
    budget = parse_budget(parts.run.config.training.budget)
    timed = budget.unit == "seconds" and parts.run.read_plans().extended_at is None
    screen = TrainingScreen(budget.amount if timed else None, parts.unit)
    test = FinalTest(batch_fraction=_batch_fraction(parts.batches, parts.valid))
    if tested is not None:
        evaluated = task.eval_batches(tested)
        # Ranks that share the weights would all have to compute outputs and statistics.
        try_alone = partial(screen.try_outputs, partial(task.try_outputs, data.train, tested))
        try_outputs = float if world.shares_weights else try_alone
        fraction = _batch_fraction(parts.batches, parts.valid or evaluated)
        test = FinalTest(evaluated.per_epoch, try_outputs, fraction)
    callbacks.add_first(screen)
    # What was looked up in a text for its batches is not looked up again.
    rows = getattr(parts.batches, "token_rows", data.train)
    measured = parts.run.config.training.statistics and not world.shares_weights
    probe = layer_probe(task, rows) if measured else None
    trained = task.model, objective, parts.batches, parts.valid
    return screen, Trainer(parts.run, *trained, callbacks, test, probe, world)


def _report(
    parts: TrainingParts,
    objective: Objective,
    trainer: Trainer,
    on_result: Callable[[dict[str, Any]], None],
    callbacks: CallbackList,
    together: Agreement,
) -> None:
    """Evaluate a trained run, print and write its scores, and draw its curves."""
    run, task, data, tested = parts.run, parts.task, parts.data, parts.tested
    progress, report, baseline = trainer.state.counters, None, None
    scores: dict[str, float] = {}
    if tested is None:
        load_run_weights(run, task)
    result: dict[str, Any] = {"run": str(run.path), "steps": progress.step, "seconds": progress.seconds}
    if tested is not None:
        split = "valid" if data.test is None else "test"
        scores, report = test_together(parts, objective, split, together)
        result |= {"split": split} | scores
        result |= {} if report is None else report.to_json()
        release_freed_memory()  # that of the steps is not needed any more, and the baseline needs much
        with Activity("fitting the baseline"):
            baseline = task.baseline(data.train, tested)
        result |= {} if baseline is None else {"baseline": baseline.to_json()}
        callbacks.emit(Callback.on_test, result)
    print_summary(run, task, result, report, progress.best_step, baseline, data.held_out is not None)
    on_result(result)
    if "split" in result:
        write_scores(run.path, progress.step, result["split"], scores)
    if progress.step:
        with Activity("drawing the curves"):
            title = f"{run.path.name}: {', '.join(map(str, task.components()))}"
            training = LoggedTraining(run, title, task.summarize(data).log_units(task.loss_unit))
            write_payload(curves_payload(training), run.curves)


def _batch_fraction(batches: Batches, evaluated: Batches | None) -> float:
    """Return the size of an evaluated batch as a fraction of a training batch's, by their tokens."""
    return 1.0 if evaluated is None else evaluated.batch(0, 0).tokens / max(1, batches.batch(0, 0).tokens)


def trained_model(parts: TrainingParts, trainer: Trainer) -> tuple[TrainingParts, Objective]:
    """Return the parts with a model that a process can compute with alone, and its objective."""
    if trainer.placement.is_whole:
        return parts, trainer.objective
    parts = with_whole_model(parts)
    return parts, make_objective(parts)


def test_together(
    parts: TrainingParts, objective: Objective, split: str, together: Agreement
) -> tuple[dict[str, float], Report | None]:
    """Return the scores of a trained run on its held-out data, whose batches the ranks share."""
    together.exchange(None)  # the main rank has written the last checkpoint
    load_run_weights(parts.run, parts.task)
    return evaluate_and_score(parts.task.shared_by(together), objective, parts.tested, split)


def evaluate_and_score(
    task: Task, objective: Objective, held_out: Any, split: str
) -> tuple[dict[str, float], Report | None]:
    """Return the loss of held-out data with its metrics, and a report on the model's outputs."""
    batches, training = task.eval_batches(held_out), task.config.training
    predicted: LabelsByRow = {}
    with ProgressBar(f"{split} loss", before=f"{split} loss") as progress:
        scores = evaluate(
            task.model,
            objective,
            batches,
            precision=training.precision,
            progress=progress,
            predicted_labels=predicted,
            together=task.together,
            slots=training.slots,
        )
    with ProgressBar(f"{split} outputs", before=f"{split} outputs and scores") as progress:
        result = task.score(held_out, predicted, progress)
    return with_perplexity(task, scores), evaluation_report(result)


def with_perplexity(task: Task, scores: dict[str, float]) -> dict[str, float]:
    """Return the scores. If the task predicts tokens, add the perplexity, `exp(loss)`."""
    if task.loss_unit != TOKEN:
        return scores
    return scores | {"perplexity": math.exp(scores["loss"]) if scores["loss"] < 700 else math.inf}


def evaluation_report(result: EvaluationResult | None) -> Report | None:
    """Return a report on a model's outputs: scores with intervals, scores by length, the worst examples."""
    if result is None:
        return None
    texts = result.sources, result.references, result.outputs
    report = make_report(
        result.scores,
        result.lengths,
        *texts,
        losses=result.losses,
        notes=result.notes,
        place=result.place,
    )
    worst = [replace(example, source=shorten_unpacked_paths(example.source)) for example in report.worst]
    return replace(report, worst=worst)
