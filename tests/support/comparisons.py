"""Comparisons of models that were never trained, with given losses."""

from dataclasses import replace
from pathlib import Path

from foveal.metrics.student_t import mean_interval
from foveal.studies.compare.by_length import LengthCost
from foveal.studies.compare.comparison import OVER_SEEDS, Comparison
from foveal.studies.compare.differences import paired_differences
from foveal.studies.compare.results import MIN_SEEDS, ModelResult, TrainedRun
from foveal.studies.compare.sequences import SequenceFacts
from foveal.studies.compare.stored_models import PlannedModel


def trained_run(model: str, seed: int, loss: float, seconds: float) -> TrainedRun:
    """Return a run whose curve ends at its loss."""
    curve = tuple((step * 64, loss + 1 / step) for step in (10, 20, 30))
    path = Path("study", f"{model}-seed{seed}")
    scores = {"loss": loss, "perplexity": 2.7**loss, "bits_per_character": loss / 0.69}
    return TrainedRun(seed, path, "test", scores, 30, 1920, seconds + seed / 7, curve)


def with_sequences(of: Comparison) -> Comparison:
    """Return the comparison as if of language models, whose far context is worth 0.01, 0.02 and so on."""
    costs, by_position = {}, {}
    for number, model in enumerate(of.models):
        costs[model.name] = [
            LengthCost(length, 900.0, 80.0 - number, 10**7, 10**4, 1e6) for length in (64, 256)
        ]
        by_position[model.name] = {1: 3.0, 2: 2.5, 3: 2.4 - number / 100, 5: 2.39 - number / 50}
    runs = {name: [losses] for name, losses in by_position.items()}
    return replace(of, sequences=SequenceFacts(costs, by_position, runs))


def comparison(**losses: list[float]) -> Comparison:
    """Return the comparison of models with the losses of their seeds. A NaN is a failed training."""
    models = []
    for number, (name, of_seeds) in enumerate(losses.items()):
        seconds = 10.5 * (number + 1)
        runs = [trained_run(name, seed, loss, seconds) for seed, loss in enumerate(of_seeds) if loss == loss]
        errors = {seed: "it was killed" for seed, loss in enumerate(of_seeds) if loss != loss}
        plan = PlannedModel(name, f"{name}.toml", "64", 0.002, 123_456 + number, 7.5e5 * (5 - number), 10**8)
        mean = mean_interval([run.loss for run in runs]) if len(runs) >= MIN_SEEDS else None
        models.append(ModelResult(plan, tuple(runs), errors, len(runs), mean))
    by_seed = {model.name: {run.seed: run.loss for run in model.runs} for model in models}
    return Comparison(
        Path("study"),
        "notes.txt",
        (("equal terms", "the same rows"),),
        OVER_SEEDS,
        "seed",
        "test",
        "nats per token",
        "characters",
        tuple(models),
        paired_differences(by_seed, MIN_SEEDS),
    )
