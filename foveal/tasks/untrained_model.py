"""A model before training: a preset, a TOML file, or a published image network."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from foveal.config import Config, preset_names
from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.runtime import seed_everything
from foveal.data.core.batching import ExampleBatch
from foveal.data.open import DataPaths
from foveal.data.pairs.pair import PairProcessor
from foveal.inspection.activations.compute import unaugmented_batch
from foveal.models.image_networks import published_input
from foveal.models.network_registry import NETWORKS
from foveal.plugins.references import resolve_references
from foveal.tasks.base import Task
from foveal.tasks.config import from_tables, load_config
from foveal.tasks.configure import network_config
from foveal.tasks.data_init import data_dependent_init
from foveal.tasks.registry import task_of
from foveal.tasks.session import build_model

RANDOM_CLASSES = 10
"""Classes of random images."""
LARGE_IMAGE_SIZE, LARGE_IMAGE_BATCH = 64, 16
"""Networks for larger images get batches of this size, since all their activations are in memory."""


@dataclass(frozen=True)
class UntrainedModel:
    """A model without weights, from its config."""

    name: str
    """The preset, file or network that the user named."""
    config: Config
    device: torch.device

    def initialized(
        self, initializations: Sequence[str], data: str | None, log: Log
    ) -> Iterator[tuple[str, Task, Any]]:
        """Yield each initialization, the task with a model that has these initial weights, and the same
        batch.

        The batch is from the training split of `data`. Without `data`, the batch has random images.

        Raises: UserError: there are no `data`, and the model does not classify images.
        """
        task = task_of(self.config)
        prepared = None if data is None else task.prepare(DataPaths(data), log)
        if prepared is None:
            processor, batch = _random_image_batch(task)
        else:
            processor, batch = prepared.processor, unaugmented_batch(task, prepared.train)
        for initialization in initializations:
            tables = {"model": {"initialization": initialization}}
            task = task_of(from_tables(self.config.model_dump(), tables)).bind(processor)
            task = task.bind(processor, build_model(task, self.device).train())
            if prepared is not None:
                data_dependent_init(task, prepared, reused=False)
            yield initialization, task, batch


def untrained_model(name: str, settings: Sequence[str], device: torch.device) -> UntrainedModel:
    """Return the model `name` with `settings` as overrides.

    Raises: UserError: there is no such model, or a setting does not fit.
    """
    settings = resolve_references(settings)
    if name in preset_names() or name.endswith(".toml"):
        return UntrainedModel(name, load_config(name, settings), device)
    is_large = name in NETWORKS and published_input(name)[1] > LARGE_IMAGE_SIZE
    small_batch = [f"data.image.batch_size={LARGE_IMAGE_BATCH}"] if is_large else []
    return UntrainedModel(name, network_config(name, [*small_batch, *settings]), device)


def _random_image_batch(task: Task) -> tuple[PairProcessor, ExampleBatch]:
    """Return standard normal pixels, like those of standardized images, and random labels."""
    if not task.trains_networks:
        raise UserError(f"a model of task {task.name} reads no random images: name data with --data")
    image = task.config.data.image
    seed_everything(task.config.training.seed, "inspected images")
    columns = {
        "source": torch.randn(image.batch_size, image.channels, image.size, image.size),
        "label": torch.randint(RANDOM_CLASSES, (image.batch_size,)),
    }
    rows = torch.arange(image.batch_size)
    batch = ExampleBatch(rows, columns, {}, torch.ones_like(rows))
    return task.sized_processor({"classes": RANDOM_CLASSES}), batch
