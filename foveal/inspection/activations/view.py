"""The view `activations`: of a run, or of a model before its training with one or several first weights."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from foveal.config import AugmentConfig, Config, from_tables, load_config, preset_names
from foveal.core.errors import UserError
from foveal.core.runtime import seed_everything
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.standardize import Statistics
from foveal.data.images.image_examples import ImageInputs
from foveal.inspection.activations.compute import CAVEAT, Activations, activations_of
from foveal.inspection.activations.plot import draw
from foveal.inspection.layers.view import network_config
from foveal.metrics.report import aligned
from foveal.models.image_networks import NETWORKS, made_for
from foveal.store.durable import replace_file
from foveal.tasks.evaluation_data import held_out
from foveal.tasks.session import (
    Given,
    build_model,
    build_task,
    fit_first,
    kind_of,
    load,
    training_order,
)
from foveal.training.protocols import Batch, Task
from foveal.training.step import begin, objective, total_weights
from foveal.ui.console import check_picture, result_line, say

CLASSES = 10
"""Of random images."""
LARGE, FEW = 64, 16
"""Pixels to a side beyond which a network by its name is shown so few: all its activations are in memory."""


def show_activations(
    what: str,
    settings: tuple[str, ...],
    data: str | None,
    initialization: str | None,
    out: Path | None,
    device: torch.device,
    json: bool,
) -> None:
    """Print, and draw into the PNG `out`, the statistics of a run's activations on held-out data (all of
    `data`, if given), or of a preset's or network's with each `initialization`, separated by commas."""
    check_picture(out)
    if Path(what).is_dir():
        if settings or initialization:
            raise UserError(f"{what}: a run has its weights: leave out --initialization and settings")
        rows = {"trained": _of_run(what, data, device)}
    else:
        config = _config(what, settings)
        starts = (initialization or config.model.initialization).split(",")
        rows = _untrained(config, [start.strip() for start in starts], data, device)
    for layers in rows.values():
        if not layers:
            raise UserError(f"{what}: there is no activation function in it")
    if out is not None:
        replace_file(out, draw(rows, f"Activations of {what}, layer by layer"))
    if json:
        found = {name: [layer.to_json() for layer in layers] for name, layers in rows.items()}
        result_line({"of": what, "activations": found} | ({} if out is None else {"picture": str(out)}))
        return
    for name, layers in rows.items():
        print(f"{name}\n{_table(layers)}\n")
    print(CAVEAT + ("" if out is None else f"\npicture: {out}"))


def _config(what: str, settings: tuple[str, ...]) -> Config:
    if what in preset_names() or what.endswith(".toml"):
        return load_config(what, settings)
    large = what in NETWORKS and made_for(what)[1] > LARGE
    return network_config(what, (f"data.image.batch={FEW}", *settings) if large else settings)


def _of_run(path: str, data: str | None, device: torch.device) -> list[Activations]:
    """In evaluation mode, as the run is used."""
    loaded = load(path, device)
    part = held_out(loaded, data, "with --data").part
    model = loaded.model.requires_grad_(True)  # gradients go through frozen layers, too
    # REINFORCE's gradient is 0 where all walks of a row are the likeliest one: so that of imitation is shown.
    config = from_tables(loaded.config.model_dump(), {"task": {"signal": "imitation"}})
    return _seen(model, build_task(config, model, loaded.inputs), _mixed(config, part), config)


def _untrained(
    config: Config, starts: list[str], data: str | None, device: torch.device
) -> dict[str, list[Activations]]:
    """Each as the first step of a training would see it, on the same batch."""
    prepared = None if data is None else kind_of(config).prepare(config, Given(data), say)
    if prepared is None:
        inputs, batch = _random_images(config)
    else:
        inputs, batch = prepared.inputs, _mixed(config, prepared.train)
    rows = {}
    for start in starts:
        again = from_tables(config.model_dump(), {"model": {"initialization": start}})
        model = build_model(again, inputs, device).train()
        if prepared is not None:
            fit_first(again, model, prepared, taken=False)
        rows[start] = _seen(model, build_task(again, model, inputs), batch, again)
    return rows


def _random_images(config: Config) -> tuple[ImageInputs, Batch]:
    """Standard normal pixels, as those of standardised images are on the whole, and random labels."""
    if config.task.name != "images":
        raise UserError(f"a model of task {config.task.name} reads no random images: name data with --data")
    image = config.data.image
    names = tuple(str(number) for number in range(CLASSES))
    inputs = ImageInputs(Statistics((0.0,) * image.channels, (1.0,) * image.channels), names, image.size)
    seed_everything(config.training.seed, "inspected images")
    columns = {
        "source": torch.randn(image.batch, image.channels, image.size, image.size),
        "label": torch.randint(CLASSES, (image.batch,)),
    }
    return inputs, ExampleBatch(torch.arange(image.batch), columns, {}, image.batch)


def _mixed(config: Config, data: Any) -> Batch:
    """A batch in random order, since data may be sorted by class; images unchanged."""
    plain = config.data.model_copy(update={"augment": AugmentConfig()})
    return training_order(config.model_copy(update={"data": plain}), data).batch(0, 0)


def _seen(model: nn.Module, task: Task, batch: Batch, config: Config) -> list[Activations]:
    def loss() -> Tensor:
        seed_everything(config.training.seed, "inspected")
        result, _ = task(batch, begin(task, batch, None))
        return objective(result, total_weights(task, [batch]))

    return activations_of(model, loss)


def _table(layers: list[Activations]) -> str:
    head = ["layer", "function", "output", "mean", "deviation", "gradient", "saturated", "zeros", "dead"]
    rows = [
        [
            layer.name,
            layer.function,
            "x".join(map(str, layer.shape)),
            *(_number(size) for size in (layer.mean, layer.deviation, layer.gradient)),
            *(_percent(share) for share in (layer.saturated, layer.zeros, layer.dead)),
        ]
        for layer in layers
    ]
    told = [column for column in zip(head, *rows, strict=True) if any(column[1:])]
    return aligned(list(zip(*told, strict=True)))


def _number(size: float | None) -> str:
    return "" if size is None else f"{size:.2g}"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"
