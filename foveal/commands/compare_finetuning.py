"""`foveal transfer DATA --from RUN`: how much of an encoder to train on, measured on one's own images."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from cyclopts import Parameter

from foveal.commands.evaluate import measured
from foveal.commands.resume import resume
from foveal.commands.train import train
from foveal.config import load_config
from foveal.core.errors import UserError
from foveal.core.progress import Watch
from foveal.core.runtime import choose_device
from foveal.core.signals import Interrupted, Signals
from foveal.data.core.prepared_data import Prepared, Taken
from foveal.data.core.split_data import Part, evenly
from foveal.data.images.image_examples import Pictures
from foveal.inspection.curves import read_log
from foveal.inspection.neighbors.compute import neighbours, voted
from foveal.inspection.neighbors.view import centred
from foveal.layers.vision.conv2d import BatchNorm2d
from foveal.metrics.report import aligned
from foveal.store.durable import new_folder, write_new
from foveal.store.run import check_outside, check_place, default_path, open_run
from foveal.store.sealed import open_json, seal_json
from foveal.studies.finetuning_advice import MUCH, Advice, Measured, Way, advise, verdict
from foveal.tasks.image_classification import ImageKind
from foveal.tasks.session import Given, Loaded, kind_of, load
from foveal.training.layer_depth import depths
from foveal.training.plan import parse_budget
from foveal.training.trainer import FinishedError
from foveal.ui.console import OUTPUT, duration, facts_table, result_line, say
from foveal.ui.progress_bar import Meter

GIVEN = "transfer.json"
K, MOST, ASKED = 5, 2000, 500
"""Neighbours that vote; among so many training images at most, for so many held-out ones at most."""
TENTH = 0.1
"""Of the rate at which a run was trained; an imported one has a rate to go on with."""
CAVEAT = "each is trained once: the intervals are of the test images, and another seed differs too"
OWN = ("model.", "optimizer.", "schedule.", "data.image.", "data.augment.")
"""Settings of the run's recipe: from scratch is trained by the preset instead."""


def transfer(
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
        The folder of the four runs; runs/DATA-transfer-N if not given. Given again, it goes on where it was
        stopped, and what is finished is kept.
    budget
        How long to train each: 90s, 3m, 2000steps, 5epochs.
    device
        cpu, cuda, or auto.
    json
        Print one JSON object with the result on standard output.
    """
    parse_budget(budget)
    folder = run or default_path(data, "transfer")
    given: dict[str, Any] = {"data": data, "overrides": list(overrides), "from": str(from_), "budget": budget}
    given |= {"valid": valid, "test": test}
    options = ["--from", str(from_), "--budget", budget, "--run", str(folder)]
    options += [f"--{name}={path}" for name, path in (("valid", valid), ("test", test)) if path]
    again = shlex.join(["foveal", "transfer", data, *overrides, *options])
    parts = Given(data, valid, test)
    ways: dict[Way, dict[str, Any]] = {}
    try:
        with Signals(), Meter("images compared") as watch:
            loaded = load(from_, choose_device(device))
            found = _alike(loaded, overrides, parts, watch)
            _make(folder, given)
        for way, settings in _ways(loaded, overrides).items():
            path = folder / way
            say(f"{path}: {' '.join(settings) or 'the preset images'}")
            _trained(path, parts, settings, None if way == "scratch" else from_, budget, device)
            ways[way] = _measure(path, device)
    except Interrupted as stop:
        raise Interrupted(stop.number, f"; what is finished is kept; go on with: {again}") from None
    _tell(folder, found, ways, json)


class Alike(NamedTuple):
    """What was measured before any training."""

    images: int
    classes: int
    features: float
    pixels: float

    @property
    def advice(self) -> Advice:
        return advise(self.images / self.classes, self.features, self.pixels)


def _alike(loaded: Loaded, overrides: tuple[str, ...], parts: Given, watch: Watch) -> Alike:
    """How often the nearest images have the right label, by features of the run as it is, and by pixels."""
    path = loaded.run.path
    config, kind = load_config(str(path / "config.toml"), list(overrides)), kind_of(loaded.config)
    if not isinstance(kind, ImageKind):
        raise UserError(f"{path}: a run of task {config.task.name}, but it is images that are compared here")
    if max(depths([name for name, _ in loaded.model.named_parameters()]).values()) < 2:
        raise UserError(f"{path}: its encoder is of one layer, so there is nothing to compare")
    taken = Taken(loaded.inputs.source, loaded.inputs.labels)
    prepared: Prepared[Any, Part[Pictures]] = kind.prepare(config, parts, say, None, taken)
    held_out = prepared.held_out
    if held_out is None:
        raise UserError(
            f"{parts.data}: no held-out images to measure on: give data.test=0.2, or a set with --test"
        )
    (few, right), (among, labels) = _some(held_out, ASKED), _some(prepared.train, MOST)
    asked, known = (kind.once(centred(config), pictures) for pictures in (few, among))
    found = neighbours(loaded.model, asked, known, K, "cosine", watch)
    shares = [np.mean(np.array(voted(near, labels)) == np.array(right)) for near in found]
    return Alike(len(prepared.train), len(prepared.inputs.labels), *map(float, shares))


def _some(images: Part[Pictures], most: int) -> tuple[Pictures, list[str]]:
    """At most so many of them, evenly from the first to the last, and their labels."""
    rows = evenly(len(images), most)
    return images.examples.some(rows), [images.answers[row] for row in rows]


def _make(folder: Path, given: dict[str, Any]) -> None:
    """The folder, with what was asked for; UserError if it is there for something else."""
    kept = folder / GIVEN
    if not kept.is_file():
        check_place(folder)
        check_outside(folder, given["data"], given["valid"], given["test"])
        with new_folder(folder) as new:
            write_new(new / GIVEN, seal_json(given))
    elif open_json(kept.read_bytes(), str(kept)) != given:
        raise UserError(f"{folder} was made with other settings: give them again, or choose another --run")


def _ways(loaded: Loaded, overrides: tuple[str, ...]) -> dict[Way, list[str]]:
    """The settings of each, those that are given last."""
    config = loaded.config
    imported = loaded.run.facts["data"]["data"] is None
    rate = config.optimizer.rate * (1 if imported else TENTH)
    warmup = min(20, config.schedule.warmup)
    common = [f"optimizer.rate={rate:g}", f"schedule.warmup={warmup}"]
    norms = any(isinstance(module, BatchNorm2d) for module in loaded.model.modules())
    ways: dict[Way, list[str]] = {
        "head": ["training.freeze=encoder"],
        "last-block": ["training.freeze=below-last-block"],
        "all": [f"training.freeze={'norms' if norms else 'none'}", "optimizer.layer_decay=0.9"],
    }
    ways = {way: [*settings, *common, *overrides] for way, settings in ways.items()}
    return ways | {"scratch": [one for one in overrides if not one.startswith(OWN)]}


def _trained(
    path: Path, parts: Given, settings: list[str], start: Path | None, budget: str, device: str
) -> None:
    """The run is trained to its end, from where it is."""
    if path.exists():
        try:
            resume(path)
        except FinishedError:
            say(f"{path}: finished before")
        return
    train(
        parts.data,
        *settings,
        task="images",
        from_=start,
        valid=parts.valid,
        test=parts.test,
        run=path,
        budget=budget,
        device=device,
    )


def _measure(path: Path, device: str) -> dict[str, Any]:
    with Signals():
        found = measured(load(path, choose_device(device)), None)
    assert found.report is not None  # there is one of every kind that chooses
    last = read_log(open_run(path).metrics, "step")[-1]
    accuracy = found.report.scores[0].value
    low, high = found.report.intervals.get("accuracy", (0.0, 1.0))
    trained = {"steps": last["step"], "seconds": last["seconds"]}
    scores = {"loss": found.scores["loss"], "accuracy": accuracy, "accuracy_interval": [low, high]}
    return {"run": str(path), "split": found.split, **trained, **scores}


def _tell(folder: Path, found: Alike, ways: dict[Way, dict[str, Any]], json: bool) -> None:
    advice = found.advice
    shares = {way: Measured(one["accuracy"], *one["accuracy_interval"]) for way, one in ways.items()}
    judged = verdict(advice.way, shares)
    if json:
        near = {"features": found.features, "pixels": found.pixels}
        alike = {"images": found.images, "classes": found.classes, "neighbours": near}
        result_line({"run": str(folder), **alike, "advice": advice.way, "verdict": judged, "ways": ways})
        return
    split = next(iter(ways.values()))["split"]
    rows = [["way", "steps", "training", "accuracy", f"95 % interval ({split})", "run"]]
    for way, one in ways.items():
        low, high = (f"{100 * end:.1f}" for end in one["accuracy_interval"])
        rows.append(
            [
                f"{way} *" if way == advice.way else way,
                f"{one['steps']:,}",
                duration(one["seconds"]),
                f"{100 * one['accuracy']:.1f} %",
                f"{low} to {high}",
                one["run"],
            ]
        )
    OUTPUT.print(aligned(rows), soft_wrap=True, markup=False)
    facts_table([*_words(found), ("found", judged), ("caveat", CAVEAT)], OUTPUT)


def _words(found: Alike) -> Iterator[tuple[str, str]]:
    """The two questions, what was measured, and the advice (*), with what would refute it."""
    advice, each = found.advice, found.images / found.classes
    size = f"{'much' if advice.much else 'little'} ({MUCH:,.0f} or more would be much, by convention)"
    yield "data", f"{found.images:,} images to train on, {each:,.0f} a class: {size}"
    votes = f"{100 * found.features:.1f} % by its features as they are, {100 * found.pixels:.1f} % by pixels"
    word, half = ("alike", "at most half") if advice.alike else ("unlike", "more than half")
    why = f"the features make {half} of the pixels' errors"
    yield "alike", f"{K} nearest images right: {votes}: {word}, since {why}"
    against = "refuted if another way's interval lies above, and with other seeds too"
    yield "advice", f"* {advice.words}; {against}"
