"""`foveal compare-finetuning DATA --from RUN`: measure how much of an encoder to train."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from cyclopts import Parameter

from foveal.api.evaluation import evaluate_run
from foveal.api.training.options import TrainingOptions
from foveal.commands.resume import resume
from foveal.commands.train import train
from foveal.config import parse_overrides
from foveal.core.errors import UserError
from foveal.core.module_facts import norms_with_statistics
from foveal.core.progress import ProgressCallback
from foveal.core.runtime import resolve_device
from foveal.core.signals import Interrupted, SignalHandler
from foveal.data.core.prepared_data import PreparedData, ReusedProcessors
from foveal.data.core.split_data import SplitData, evenly_spaced
from foveal.data.images.image_examples import ImageExamples
from foveal.data.open import DataPaths
from foveal.inspection.curves.log_records import read_metrics_log
from foveal.inspection.image_queries import with_center_crop
from foveal.inspection.neighbors.compute import find_neighbors, majority_labels
from foveal.metrics.report import format_table
from foveal.store.run import open_run
from foveal.store.run_paths import default_run_path
from foveal.studies.finetuning_advice import (
    MANY_IMAGES_PER_CLASS,
    Advice,
    MeasuredAccuracy,
    Strategy,
    advise,
    verdict,
)
from foveal.studies.trials.folder import open_study
from foveal.tasks.config import from_tables
from foveal.tasks.registry import network_task
from foveal.tasks.session import Session, load
from foveal.training.layer_depth import layer_depths
from foveal.training.plan import parse_budget
from foveal.training.trainer import FinishedError
from foveal.ui.console import STDOUT, format_duration, log, print_facts, print_json
from foveal.ui.progress_bar import ProgressBar

NEIGHBORS, MAX_TRAINING_IMAGES, MAX_QUERIES = 5, 2000, 500
"""Neighbors that vote; most training images to search for them; most held-out images that are looked up."""
LR_FACTOR = 0.1
"""The factor on a run's learning rate. Imported runs have a rate for fine-tuning, which stays as it is."""
CAVEAT = "each way is trained once: intervals are over test images, and another seed differs, too"
RECIPE_SETTINGS = ("model.", "optimizer.", "schedule.", "data.image.", "data.augment.")
"""Settings of the run's recipe, which training from scratch takes from the preset instead."""


def compare_finetuning(
    data: str,
    /,
    *overrides: str,
    from_: Annotated[Path, Parameter(name="--from")],
    valid: str | None = None,
    test: str | None = None,
    run: Path | None = None,
    budget: Annotated[str, Parameter(allow_leading_hyphen=True)] = "3m",
    device: str = "auto",
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Fine-tune RUN's encoder on DATA in several ways, and compare them.

    The ways are to train the head alone, the head and the last block, all layers, and another network from
    scratch.

    Parameters
    ----------
    data
        Labeled images, as for `foveal train`.
    overrides
        Settings in place of the run's: key.sub=value, such as data.image.size=96.
    from_
        A run of images whose encoder to start from.
    valid
        Held-out data that selects the best weights; nothing is then split off from DATA.
    test
        Held-out data for the reported scores; nothing is then split off from DATA.
    run
        The folder of the four runs; runs/DATA-compare-finetuning-N if not given. In an existing folder the
        comparison continues where it was stopped.
    budget
        How long to train each way: 90s, 3m, 2000steps, 5epochs.
    device
        cpu, cuda, mps, or auto.
    json
        Print one JSON object with the result on standard output.
    """
    parse_budget(budget)
    folder = run or default_run_path(data, "compare-finetuning")
    arguments = {"data": data, "overrides": list(overrides), "from": str(from_), "budget": budget}
    options = ["--from", str(from_), "--budget", budget, "--run", str(folder)]
    options += [f"--{name}={path}" for name, path in (("valid", valid), ("test", test)) if path]
    command = shlex.join(["foveal", "compare-finetuning", data, *overrides, *options])
    paths = DataPaths(data, valid, test)
    results: dict[Strategy, dict[str, Any]] = {}
    try:
        with SignalHandler(), ProgressBar("images compared") as progress:
            base = load(from_, resolve_device(device))
            similarity = _feature_similarity(base, overrides, paths, progress)
            given = arguments | {"valid": valid, "test": test}
            open_study(folder, "compare-finetuning", given, data, valid, test)
        for strategy, settings in _strategy_overrides(base, overrides).items():
            path = folder / strategy
            log(f"{path}: {' '.join(settings) or f'the preset {network_task().preset}'}")
            _train_or_resume(path, paths, settings, None if strategy == "scratch" else from_, budget, device)
            results[strategy] = _evaluate_strategy(path, device)
    except Interrupted as stop:
        raise Interrupted(stop.number, f"; finished runs are kept; go on with: {command}") from None
    _print_result(folder, similarity, results, json)


class FeatureSimilarity(NamedTuple):
    """The size of the data, and the accuracy of nearest neighbors before any training."""

    images: int
    classes: int
    features: float
    """The accuracy by the run's features."""
    pixels: float
    """The accuracy by pixels."""

    @property
    def advice(self) -> Advice:
        """The usual advice for these numbers."""
        return advise(self.images / self.classes, self.features, self.pixels)


def _feature_similarity(
    base: Session, overrides: tuple[str, ...], data_paths: DataPaths, progress: ProgressCallback
) -> FeatureSimilarity:
    """Return how often the nearest images have the correct label, by features of the base run and by pixels.

    Raises: UserError: the run has no encoder to compare, or the data have no held-out images.
    """
    path = base.run.path
    config = from_tables(base.config.model_dump(), parse_overrides(overrides))
    if not base.task.trains_networks:
        raise UserError(f"{path}: a run of task {config.task.name}, and only runs on images can be compared")
    if max(layer_depths(base.model).values()) < 2:
        raise UserError(f"{path}: its encoder has only one layer, so there is nothing to compare")
    task: Any = type(base.task)(config)
    reused = ReusedProcessors(base.processor.source, base.processor.target.labels)
    prepared: PreparedData[Any, SplitData[ImageExamples]] = task.prepare(data_paths, log, reused)
    held_out = prepared.held_out
    if held_out is None:
        raise UserError(
            f"{data_paths.data}: no held-out images to measure on: give data.test_fraction=0.2, "
            "or data with --test"
        )
    queries, query_labels = _subset(held_out, MAX_QUERIES)
    candidates, labels = _subset(prepared.train, MAX_TRAINING_IMAGES)
    task = with_center_crop(task)
    looked_up, searched = (task.example_batches(images) for images in (queries, candidates))
    spaces = find_neighbors(base.model, looked_up, searched, NEIGHBORS, "cosine", progress)
    accuracies = [
        float(np.mean(np.array(majority_labels(nearest, labels)) == np.array(query_labels)))
        for nearest in spaces
    ]
    return FeatureSimilarity(len(prepared.train), len(prepared.processor.target.labels), *accuracies)


def _subset(images: SplitData[ImageExamples], max_images: int) -> tuple[ImageExamples, list[str]]:
    """Return at most `max_images` images, evenly spaced from the first to the last, and their labels."""
    rows = evenly_spaced(len(images), max_images)
    return images.examples.subset(rows), [images.references[row] for row in rows]


def _strategy_overrides(base: Session, overrides: tuple[str, ...]) -> dict[Strategy, list[str]]:
    """Return the settings of each strategy; the user's stand last, and so take precedence."""
    config = base.config
    imported = base.run.manifest["data"]["data"] is None
    rate = config.optimizer.lr * (1 if imported else LR_FACTOR)
    warmup = min(20, config.schedule.warmup_steps)
    common = [f"optimizer.lr={rate:g}", f"schedule.warmup_steps={warmup}"]
    freeze = "norms" if norms_with_statistics(base.model) else "none"
    own: dict[Strategy, list[str]] = {
        "head": ["training.freeze=encoder"],
        "last-block": ["training.freeze=below-last-block"],
        "all": [f"training.freeze={freeze}", "optimizer.layer_decay=0.9"],
    }
    settings = {strategy: [*first, *common, *overrides] for strategy, first in own.items()}
    return settings | {"scratch": [text for text in overrides if not text.startswith(RECIPE_SETTINGS)]}


def _train_or_resume(
    path: Path, data_paths: DataPaths, settings: list[str], base_run: Path | None, budget: str, device: str
) -> None:
    """Train a run to its end, from its last checkpoint if the run exists."""
    if path.exists():
        try:
            resume(path)
        except FinishedError:
            log(f"{path}: already finished")
        return
    options = TrainingOptions(
        task=network_task().name,
        start_from=base_run,
        valid=data_paths.valid,
        test=data_paths.test,
        run=path,
        budget=budget,
        device=device,
    )
    train(str(data_paths.data), *settings, options=options)


def _evaluate_strategy(path: Path, device: str) -> dict[str, Any]:
    """Return the scores of a trained run, and the duration of its training."""
    with SignalHandler():
        result = evaluate_run(load(path, resolve_device(device)), None)
    assert result.report is not None  # tasks with classes have one
    last = read_metrics_log(open_run(path).metrics)["step"][-1]
    accuracy = result.report.scores[0].value
    low, high = result.report.intervals.get("accuracy") or (0.0, 1.0)
    duration = {"steps": last["step"], "seconds": last["seconds"]}
    scores = {"loss": result.scores["loss"], "accuracy": accuracy, "accuracy_interval": [low, high]}
    return {"run": str(path), "split": result.split, **duration, **scores}


def _print_result(
    folder: Path, similarity: FeatureSimilarity, results: dict[Strategy, dict[str, Any]], json: bool
) -> None:
    advice = similarity.advice
    accuracies = {
        strategy: MeasuredAccuracy(result["accuracy"], *result["accuracy_interval"])
        for strategy, result in results.items()
    }
    outcome = verdict(advice.strategy, accuracies)
    if json:
        neighbors = {"features": similarity.features, "pixels": similarity.pixels}
        sizes = {"images": similarity.images, "classes": similarity.classes, "neighbors": neighbors}
        comparison = {"advice": advice.strategy, "verdict": outcome, "ways": results}
        print_json({"run": str(folder)} | sizes | comparison)
        return
    split = next(iter(results.values()))["split"]
    rows = [["way", "steps", "training", "accuracy", f"95 % interval ({split})", "run"]]
    for strategy, result in results.items():
        low, high = (f"{100 * end:.1f}" for end in result["accuracy_interval"])
        rows.append(
            [
                f"{strategy} *" if strategy == advice.strategy else strategy,
                f"{result['steps']:,}",
                format_duration(result["seconds"]),
                f"{100 * result['accuracy']:.1f} %",
                f"{low} to {high}",
                result["run"],
            ]
        )
    STDOUT.print_wrapped(format_table(rows))
    print_facts([*_explain(similarity), ("result", outcome), ("caveat", CAVEAT)], STDOUT)


def _explain(similarity: FeatureSimilarity) -> Iterator[tuple[str, str]]:
    """Yield the two questions with the measured answers, and the advice (*) with the result that would refute
    it."""
    advice, each = similarity.advice, similarity.images / similarity.classes
    amount = "many" if advice.many_images else "few"
    limit = f"{MANY_IMAGES_PER_CLASS:,.0f} or more are many, by convention"
    yield "data", f"{similarity.images:,} training images, {each:,.0f} per class: {amount} ({limit})"
    by_features, by_pixels = f"{100 * similarity.features:.1f} %", f"{100 * similarity.pixels:.1f} %"
    votes = f"{by_features} correct by the run's features, {by_pixels} by pixels"
    word, half = ("similar", "at most half") if advice.features_transfer else ("different", "more than half")
    yield (
        "similarity",
        f"{NEIGHBORS} nearest images: {votes}: {word}, since features make {half} of the pixels' errors",
    )
    yield "advice", f"* {advice.text}; refuted if another way's interval lies above, also with other seeds"
