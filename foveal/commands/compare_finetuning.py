"""`foveal compare-finetuning DATA --from RUN`: how much of an encoder to train, by measurement."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from cyclopts import Parameter

from foveal.commands.evaluate import evaluate_run
from foveal.commands.resume import resume
from foveal.commands.train import train
from foveal.config import parse_overrides
from foveal.core.errors import UserError
from foveal.core.progress import ProgressCallback
from foveal.core.runtime import resolve_device
from foveal.core.signals import Interrupted, SignalHandler
from foveal.data.core.prepared_data import PreparedData, ReusedProcessors
from foveal.data.core.split_data import SplitData, evenly_spaced
from foveal.data.images.image_examples import ImageExamples
from foveal.inspection.curves import read_metrics_log
from foveal.inspection.image_queries import with_center_crop
from foveal.inspection.neighbors.compute import find_neighbors, majority_labels
from foveal.layers.vision.conv2d import BatchNorm2d
from foveal.metrics.report import format_table
from foveal.store.durable import atomic_folder, write_synced
from foveal.store.run import check_outside_data, check_run_path, default_run_path, open_run
from foveal.store.sealed import open_json, seal_json
from foveal.studies.finetuning_advice import (
    MANY_IMAGES_PER_CLASS,
    Advice,
    MeasuredAccuracy,
    Strategy,
    advise,
    verdict,
)
from foveal.tasks.base import DataPaths
from foveal.tasks.config import from_tables
from foveal.tasks.registry import network_task
from foveal.tasks.session import Session, load
from foveal.training.layer_depth import layer_depths
from foveal.training.plan import parse_budget
from foveal.training.trainer import FinishedError
from foveal.ui.console import STDOUT, format_duration, log, print_facts, print_json
from foveal.ui.progress_bar import ProgressBar

SETTINGS_FILE = "compare-finetuning.json"
NEIGHBORS, MAX_TRAINING_IMAGES, MAX_QUERIES = 5, 2000, 500
"""Neighbours that vote; among so many training images at most, for so many held-out ones at most."""
LR_FACTOR = 0.1
"""Of the rate at which a run was trained; an imported one has a rate to go on with."""
CAVEAT = "each is trained once: the intervals are of the test images, and another seed differs too"
RECIPE_SETTINGS = ("model.", "optimizer.", "schedule.", "data.image.", "data.augment.")
"""Settings of the run's recipe: from scratch is trained by the preset instead."""


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
    """Train on from RUN's encoder with DATA's labels in four ways, one after the other, and compare them: the
    head alone, with the last block, all layers, and another network from scratch.

    Parameters
    ----------
    data
        Labelled images, as for `foveal train`.
    overrides
        Settings over the run's: key.sub=value, such as data.image.size=96.
    from_
        A run of images whose encoder to start from.
    valid
        Held-out data that chooses the best weights; nothing is then cut from DATA.
    test
        Held-out data for the reported figures; nothing is then cut from DATA.
    run
        The folder of the four runs; runs/DATA-compare-finetuning-N if not given. An existing one
        continues where it was stopped, and finished runs are kept.
    budget
        How long to train each: 90s, 3m, 2000steps, 5epochs.
    device
        cpu, cuda, or auto.
    json
        Print one JSON object with the result on standard output.
    """
    parse_budget(budget)
    folder = run or default_run_path(data, "compare-finetuning")
    given: dict[str, Any] = {"data": data, "overrides": list(overrides), "from": str(from_), "budget": budget}
    given |= {"valid": valid, "test": test}
    options = ["--from", str(from_), "--budget", budget, "--run", str(folder)]
    options += [f"--{name}={path}" for name, path in (("valid", valid), ("test", test)) if path]
    again = shlex.join(["foveal", "compare-finetuning", data, *overrides, *options])
    parts = DataPaths(data, valid, test)
    ways: dict[Strategy, dict[str, Any]] = {}
    try:
        with SignalHandler(), ProgressBar("images compared") as watch:
            loaded = load(from_, resolve_device(device))
            found = _feature_similarity(loaded, overrides, parts, watch)
            _create_folder(folder, given)
        for way, settings in _strategy_overrides(loaded, overrides).items():
            path = folder / way
            log(f"{path}: {' '.join(settings) or 'the preset {network_task().preset}'}")
            _train_or_resume(path, parts, settings, None if way == "scratch" else from_, budget, device)
            ways[way] = _evaluate_strategy(path, device)
    except Interrupted as stop:
        raise Interrupted(stop.number, f"; what is finished is kept; go on with: {again}") from None
    _print_result(folder, found, ways, json)


class FeatureSimilarity(NamedTuple):
    """What was measured before any training."""

    images: int
    classes: int
    features: float
    pixels: float

    @property
    def advice(self) -> Advice:
        return advise(self.images / self.classes, self.features, self.pixels)


def _feature_similarity(
    loaded: Session, overrides: tuple[str, ...], data_paths: DataPaths, progress: ProgressCallback
) -> FeatureSimilarity:
    """How often the nearest images have the right label, by features of the run as it is, and by pixels."""
    path = loaded.run.path
    config = from_tables(loaded.config.model_dump(), parse_overrides(overrides))
    if not loaded.task.trains_networks:
        raise UserError(f"{path}: a run of task {config.task.name}, but it is images that are compared here")
    if max(layer_depths(loaded.model).values()) < 2:
        raise UserError(f"{path}: its encoder is of one layer, so there is nothing to compare")
    task: Any = type(loaded.task)(config)
    taken = ReusedProcessors(loaded.processor.source, loaded.processor.target.labels)
    prepared: PreparedData[Any, SplitData[ImageExamples]] = task.prepare(data_paths, log, taken)
    held_out = prepared.held_out
    if held_out is None:
        raise UserError(
            f"{data_paths.data}: no held-out images to measure on: give data.test_fraction=0.2, "
            "or a set with --test"
        )
    (few, right), (among, labels) = (
        _subset(held_out, MAX_QUERIES),
        _subset(prepared.train, MAX_TRAINING_IMAGES),
    )
    task = with_center_crop(task)
    asked, known = (task.example_batches(images) for images in (few, among))
    found = find_neighbors(loaded.model, asked, known, NEIGHBORS, "cosine", progress)
    shares = [np.mean(np.array(majority_labels(near, labels)) == np.array(right)) for near in found]
    return FeatureSimilarity(len(prepared.train), len(prepared.processor.target.labels), *map(float, shares))


def _subset(images: SplitData[ImageExamples], max_images: int) -> tuple[ImageExamples, list[str]]:
    """At most so many of them, evenly from the first to the last, and their labels."""
    rows = evenly_spaced(len(images), max_images)
    return images.examples.subset(rows), [images.references[row] for row in rows]


def _create_folder(folder: Path, settings: dict[str, Any]) -> None:
    """The folder, with what was asked for; UserError if it is there for something else."""
    kept = folder / SETTINGS_FILE
    if not kept.is_file():
        check_run_path(folder)
        check_outside_data(folder, settings["data"], settings["valid"], settings["test"])
        with atomic_folder(folder) as new:
            write_synced(new / SETTINGS_FILE, seal_json(settings))
    elif open_json(kept.read_bytes(), str(kept)) != settings:
        raise UserError(f"{folder} was made with other settings: give them again, or choose another --run")


def _strategy_overrides(loaded: Session, overrides: tuple[str, ...]) -> dict[Strategy, list[str]]:
    """The settings of each, those that are given last."""
    config = loaded.config
    imported = loaded.run.manifest["data"]["data"] is None
    rate = config.optimizer.lr * (1 if imported else LR_FACTOR)
    warmup = min(20, config.schedule.warmup_steps)
    common = [f"optimizer.lr={rate:g}", f"schedule.warmup_steps={warmup}"]
    norms = any(isinstance(module, BatchNorm2d) for module in loaded.model.modules())
    ways: dict[Strategy, list[str]] = {
        "head": ["training.freeze=encoder"],
        "last-block": ["training.freeze=below-last-block"],
        "all": [f"training.freeze={'norms' if norms else 'none'}", "optimizer.layer_decay=0.9"],
    }
    ways = {way: [*settings, *common, *overrides] for way, settings in ways.items()}
    return ways | {"scratch": [one for one in overrides if not one.startswith(RECIPE_SETTINGS)]}


def _train_or_resume(
    path: Path, data_paths: DataPaths, settings: list[str], base_run: Path | None, budget: str, device: str
) -> None:
    """The run is trained to its end, from where it is."""
    if path.exists():
        try:
            resume(path)
        except FinishedError:
            log(f"{path}: finished before")
        return
    train(
        str(data_paths.data),
        *settings,
        task=network_task().name,
        from_=base_run,
        valid=data_paths.valid,
        test=data_paths.test,
        run=path,
        budget=budget,
        device=device,
    )


def _evaluate_strategy(path: Path, device: str) -> dict[str, Any]:
    with SignalHandler():
        found = evaluate_run(load(path, resolve_device(device)), None)
    assert found.report is not None  # there is one of every kind that chooses
    last = read_metrics_log(open_run(path).metrics, "step")[-1]
    accuracy = found.report.scores[0].value
    low, high = found.report.intervals.get("accuracy", (0.0, 1.0))
    trained = {"steps": last["step"], "seconds": last["seconds"]}
    scores = {"loss": found.scores["loss"], "accuracy": accuracy, "accuracy_interval": [low, high]}
    return {"run": str(path), "split": found.split, **trained, **scores}


def _print_result(
    folder: Path, similarity: FeatureSimilarity, ways: dict[Strategy, dict[str, Any]], json: bool
) -> None:
    advice = similarity.advice
    shares = {way: MeasuredAccuracy(one["accuracy"], *one["accuracy_interval"]) for way, one in ways.items()}
    judged = verdict(advice.strategy, shares)
    if json:
        near = {"features": similarity.features, "pixels": similarity.pixels}
        alike = {"images": similarity.images, "classes": similarity.classes, "neighbours": near}
        print_json({"run": str(folder), **alike, "advice": advice.strategy, "verdict": judged, "ways": ways})
        return
    split = next(iter(ways.values()))["split"]
    rows = [["way", "steps", "training", "accuracy", f"95 % interval ({split})", "run"]]
    for way, one in ways.items():
        low, high = (f"{100 * end:.1f}" for end in one["accuracy_interval"])
        rows.append(
            [
                f"{way} *" if way == advice.strategy else way,
                f"{one['steps']:,}",
                format_duration(one["seconds"]),
                f"{100 * one['accuracy']:.1f} %",
                f"{low} to {high}",
                one["run"],
            ]
        )
    STDOUT.print(format_table(rows), soft_wrap=True, markup=False)
    print_facts([*_explain(similarity), ("found", judged), ("caveat", CAVEAT)], STDOUT)


def _explain(similarity: FeatureSimilarity) -> Iterator[tuple[str, str]]:
    """The two questions, what was measured, and the advice (*), with what would refute it."""
    advice, each = similarity.advice, similarity.images / similarity.classes
    amount = "much" if advice.many_images else "little"
    size = f"{amount} ({MANY_IMAGES_PER_CLASS:,.0f} or more would be much, by convention)"
    yield "data", f"{similarity.images:,} images to train on, {each:,.0f} a class: {size}"
    by_features, by_pixels = f"{100 * similarity.features:.1f} %", f"{100 * similarity.pixels:.1f} %"
    votes = f"{by_features} by its features as they are, {by_pixels} by pixels"
    word, half = ("alike", "at most half") if advice.features_transfer else ("unlike", "more than half")
    why = f"the features make {half} of the pixels' errors"
    yield "alike", f"{NEIGHBORS} nearest images right: {votes}: {word}, since {why}"
    against = "refuted if another way's interval lies above, and with other seeds too"
    yield "advice", f"* {advice.text}; {against}"
