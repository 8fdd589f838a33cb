"""The view `activations`: of a run, or of a model before its training with one or several first weights."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from foveal.config import AugmentConfig, Config, preset_names
from foveal.core.errors import UserError
from foveal.core.runtime import seed_everything
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.standardize import Statistics
from foveal.data.images.image_examples import ImageClassificationProcessor
from foveal.inspection.activations.compute import CAVEAT, ActivationStats, collect_activations
from foveal.inspection.activations.plot import plot_activations
from foveal.metrics.report import format_table
from foveal.models.image_networks import NETWORKS, published_input
from foveal.store.durable import atomic_write
from foveal.tasks.base import DataPaths, Task
from foveal.tasks.config import from_tables, load_config
from foveal.tasks.configure import network_config
from foveal.tasks.data_init import data_dependent_init
from foveal.tasks.registry import task_of
from foveal.tasks.session import build_model, load
from foveal.training.protocols import Batch
from foveal.training.step import starting_carry, total_loss, total_weights
from foveal.ui.console import check_png_path, log, print_json

RANDOM_CLASSES = 10
"""Of random images."""
LARGE_IMAGE_SIZE, LARGE_IMAGE_BATCH = 64, 16
"""Pixels to a side beyond which a network by its name is shown so few: all its activations are in memory."""


def show_activations(
    run_or_model: str,
    settings: tuple[str, ...],
    data: str | None,
    initialization: str | None,
    out: Path | None,
    device: torch.device,
    json: bool,
) -> None:
    """Print, and draw into the PNG `out`, the statistics of a run's activations on held-out data (all of
    `data`, if given), or of a preset's or network's with each `initialization`, separated by commas."""
    check_png_path(out)
    if Path(run_or_model).is_dir():
        if settings or initialization:
            raise UserError(f"{run_or_model}: a run has its weights: leave out --initialization and settings")
        rows = {"trained": _activations_of_run(run_or_model, data, device)}
    else:
        config = _config(run_or_model, settings)
        starts = (initialization or config.model.initialization).split(",")
        rows = _activations_by_initialization(config, [start.strip() for start in starts], data, device)
    for layers in rows.values():
        if not layers:
            raise UserError(f"{run_or_model}: there is no activation function in it")
    if out is not None:
        atomic_write(out, plot_activations(rows, f"Activations of {run_or_model}, layer by layer"))
    if json:
        found = {name: [layer.to_json() for layer in layers] for name, layers in rows.items()}
        print_json(
            {"of": run_or_model, "activations": found} | ({} if out is None else {"picture": str(out)})
        )
        return
    for name, layers in rows.items():
        print(f"{name}\n{_format_table(layers)}\n")
    print(CAVEAT + ("" if out is None else f"\npicture: {out}"))


def _config(run_or_model: str, settings: tuple[str, ...]) -> Config:
    if run_or_model in preset_names() or run_or_model.endswith(".toml"):
        return load_config(run_or_model, settings)
    large = run_or_model in NETWORKS and published_input(run_or_model)[1] > LARGE_IMAGE_SIZE
    return network_config(
        run_or_model, (f"data.image.batch_size={LARGE_IMAGE_BATCH}", *settings) if large else settings
    )


def _activations_of_run(path: str, data: str | None, device: torch.device) -> list[ActivationStats]:
    """In evaluation mode, as the run is used."""
    session = load(path, device)
    part = session.held_out(data, "with --data").split_data
    session.model.requires_grad_(True)  # gradients go through frozen layers, too
    task = session.task.with_smooth_loss()
    return _activations_on_batch(task, _shuffled_batch(task, part))


def _activations_by_initialization(
    config: Config, initializations: list[str], data: str | None, device: torch.device
) -> dict[str, list[ActivationStats]]:
    """Each as the first step of a training would see it, on the same batch."""
    task = task_of(config)
    prepared = None if data is None else task.prepare(DataPaths(data), log)
    if prepared is None:
        processor, batch = _random_image_batch(task)
    else:
        processor, batch = prepared.processor, _shuffled_batch(task, prepared.train)
    rows = {}
    for start in initializations:
        task = task_of(from_tables(config.model_dump(), {"model": {"initialization": start}})).bound(
            processor
        )
        task = task.bound(processor, build_model(task, device).train())
        if prepared is not None:
            data_dependent_init(task, prepared, reused=False)
        rows[start] = _activations_on_batch(task, batch)
    return rows


def _random_image_batch(task: Task) -> tuple[ImageClassificationProcessor, Batch]:
    """Standard normal pixels, as those of standardised images are on the whole, and random labels."""
    config = task.config
    if not task.trains_networks:
        raise UserError(f"a model of task {task.name} reads no random images: name data with --data")
    image = config.data.image
    names = tuple(str(number) for number in range(RANDOM_CLASSES))
    inputs = ImageClassificationProcessor(
        Statistics((0.0,) * image.channels, (1.0,) * image.channels), names, image.size
    )
    seed_everything(config.training.seed, "inspected images")
    columns = {
        "source": torch.randn(image.batch_size, image.channels, image.size, image.size),
        "label": torch.randint(RANDOM_CLASSES, (image.batch_size,)),
    }
    return inputs, ExampleBatch(torch.arange(image.batch_size), columns, {}, image.batch_size)


def _shuffled_batch(task: Task, data: Any) -> Batch:
    """A batch in random order, since data may be sorted by class; images unchanged."""
    plain = task.config.data.model_copy(update={"augment": AugmentConfig()})
    unaugmented = type(task)(task.config.model_copy(update={"data": plain}), task.processor, task.model)
    return unaugmented.train_batches(data).batch(0, 0)


def _activations_on_batch(task: Task, batch: Batch) -> list[ActivationStats]:
    objective = task.objective()

    def loss() -> Tensor:
        seed_everything(task.config.training.seed, "inspected")
        result, _ = objective(batch, starting_carry(objective, batch, None))
        return total_loss(result, total_weights(objective, [batch]))

    return collect_activations(task.model, loss)


def _format_table(layers: list[ActivationStats]) -> str:
    head = ["layer", "function", "output", "mean", "deviation", "gradient", "saturated", "zeros", "dead"]
    rows = [
        [
            layer.name,
            layer.function,
            "x".join(map(str, layer.shape)),
            *(_format_number(size) for size in (layer.mean, layer.deviation, layer.gradient)),
            *(_format_percent(share) for share in (layer.saturated, layer.zeros, layer.dead)),
        ]
        for layer in layers
    ]
    told = [column for column in zip(head, *rows, strict=True) if any(column[1:])]
    return format_table(list(zip(*told, strict=True)))


def _format_number(size: float | None) -> str:
    return "" if size is None else f"{size:.2g}"


def _format_percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"
