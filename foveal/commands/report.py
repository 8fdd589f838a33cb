"""What `train` and `resume` have in common: train to the end, measure, draw, and say what to do next."""

import math
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
from foveal.training.trainer import Trainer


def unit_of(kind: str) -> str:
    """What a token is, in words."""
    return {"character": "characters", "byte": "bytes"}.get(kind, "tokens")


def train_and_report(run: Run, model: Generator, data: Prepared, signals: Signals, json: bool) -> None:
    """Train the run from where it is to its end; then score, draw and show it."""
    config = run.config
    unit = unit_of(data.tokenizer.kind)
    task = build_task(config, model, data.tokenizer)
    valid = None if data.valid is None else held_out_order(config, data.valid)
    budget = parse_budget(config.training.budget)
    screen = Screen(budget.amount if budget.unit == "seconds" else None, unit)
    with screen:
        trainer = Trainer(run, model, task, training_order(config, data.train), valid, screen)
        try:
            progress = trainer.run(signals)
        except Interrupted as stop:
            if not signals.urgent:
                step = trainer.state.progress.step
                ERROR.print(f"stopped by {stop} at step {step:,}; everything is saved. Go on with:")
                ERROR.print(f"  foveal resume {run.path}")
            raise
    load_run_weights(run, model)
    result: dict[str, Any] = {"run": str(run.path), "steps": progress.step, "seconds": progress.seconds}
    held_out = data.valid if data.test is None else data.test
    if held_out is not None:
        order = held_out_order(config, held_out)
        scores = evaluate(model, task, order, precision=config.training.precision, poll=signals.poll)
        result |= {"split": "valid" if data.test is None else "test"} | scored(scores)
    picture = run.path / "curves.png"
    draw_curves(run.metrics, picture, f"{run.path.name}: {config.model.mixers}", unit)
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
            f"[bold]{scores['loss']:.4f}[/] nats per token = {scores['bits_per_character']:.4f} bits per "
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
        ("next", f"foveal generate {run.path} --tokens 500"),
        ("", f"foveal evaluate {run.path} another.txt"),
    ]
    ERROR.print()
    facts_table(rows)
