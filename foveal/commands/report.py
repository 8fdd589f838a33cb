"""What `train` and `resume` have in common: train to the end, measure, draw, and say what to do next."""

import math
import shlex
from pathlib import Path
from typing import Any

from foveal.build import build_task, held_out_order, load_run_weights, training_order
from foveal.commands.console import ERROR, Screen, duration, facts_table, result_line
from foveal.data.prepare import Prepared
from foveal.heads.generate import Generator
from foveal.inspection.curves import draw_curves
from foveal.training.evaluate import evaluate
from foveal.training.interrupt import Interrupted, Signals
from foveal.training.plan import parse_budget
from foveal.training.run import Run
from foveal.training.trainer import FinishedError, Trainer


def unit_of(kind: str) -> str:
    """What a token is, in words."""
    return {"character": "characters", "byte": "bytes"}.get(kind, "tokens")


def command(name: str, path: Path, *more: str) -> str:
    """A command to type."""
    return shlex.join(["foveal", name, str(path), *more])


def train_and_report(run: Run, model: Generator, data: Prepared, signals: Signals, json: bool) -> None:
    """Train the run from where it is to its end; then score, draw and show it. The curves come last: a
    finished run without them was stopped before its report, which is then made."""
    config, picture = run.config, run.path / "curves.png"
    unit = unit_of(data.tokenizer.kind)
    task = build_task(config, model, data.tokenizer)
    valid = None if data.valid is None else held_out_order(config, data.valid)
    budget = parse_budget(config.training.budget)
    screen = Screen(budget.amount if budget.unit == "seconds" else None, unit)
    trainer = Trainer(run, model, task, training_order(config, data.train), valid, screen)
    try:
        with screen:
            try:
                trainer.run(signals)
            except FinishedError:
                if picture.exists():
                    raise
        progress = trainer.state.progress
        load_run_weights(run, model)
        result: dict[str, Any] = {"run": str(run.path), "steps": progress.step, "seconds": progress.seconds}
        held_out = data.valid if data.test is None else data.test
        if held_out is not None:
            order = held_out_order(config, held_out)
            scores = evaluate(model, task, order, precision=config.training.precision, poll=signals.poll)
            result |= {"split": "valid" if data.test is None else "test"} | scored(scores)
        draw_curves(run.metrics, picture, f"{run.path.name}: {config.model.mixers}", unit)
    except Interrupted as stop:
        at = f" at step {trainer.state.progress.step:,}; "
        saved = "its last checkpoint stays" if signals.urgent else "everything is saved"
        raise Interrupted(stop.number, f"{at}{saved}; go on with: {command('resume', run.path)}") from None
    _show(run, result, progress.best_step)
    if json:
        result_line(result)


def scored(scores: dict[str, float]) -> dict[str, float]:
    """The scores with the perplexity, `exp(loss)`."""
    return scores | {"perplexity": math.exp(min(scores["loss"], 700.0))}


def score_rows(split: str, scores: dict[str, Any]) -> list[tuple[str, str]]:
    """The scores of a split in words."""
    name = {"valid": "validation", "test": "test"}.get(split, split)
    return [
        (
            f"{name} loss",
            f"{scores['loss']:.4f} nats per token = {scores['bits_per_character']:.4f} bits per "
            f"character (perplexity {scores['perplexity']:.2f})",
        )
    ]


def _show(run: Run, result: dict[str, Any], best_step: int | None) -> None:
    weights = "the last" if best_step is None else f"of step {best_step:,}, the best on the validation text"
    rows = [("trained", f"{result['steps']:,} steps in {duration(result['seconds'])} of training")]
    rows += score_rows(result["split"], result) if "split" in result else []
    rows += [
        ("weights", f"{run.weights} ({weights})"),
        ("curves", str(run.path / "curves.png")),
        ("next", command("generate", run.path)),
        ("", command("evaluate", run.path, "another.txt")),
    ]
    ERROR.print()
    facts_table(rows)
