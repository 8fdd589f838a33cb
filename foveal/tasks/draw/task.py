"""Image generation by DRAW (Gregor et al. 2015)."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn import functional as F

from foveal.config.values import Size
from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.data.core.examples import Examples
from foveal.data.core.prepared_data import PreparedData
from foveal.data.core.split_data import SplitData
from foveal.data.images.image_examples import ImageExamples
from foveal.data.pairs.nothing import NoTarget
from foveal.data.pairs.pair import PairProcessor
from foveal.generation.events import GenerationEvent
from foveal.generation.request import GenerateRequest
from foveal.models.stack_settings import VECTOR_STACK, keys_below
from foveal.tasks.base import TaskSettings
from foveal.tasks.baseline import Baseline
from foveal.tasks.draw.generate import check_drawing_paths, generate_drawings
from foveal.tasks.draw.model import DrawModel
from foveal.tasks.draw.objective import DrawObjective
from foveal.tasks.draw.unlabeled_images import UnlabeledImageSource
from foveal.tasks.results import Answer, TaskSummary
from foveal.tasks.shapes.images import ImageTask, sees_several_views


class DrawSettings(TaskSettings):
    steps: Size = 16
    """Steps in which an image is drawn."""
    latent_size: Size = 64
    """Width of the latent vector of a step."""
    read_size: Size = 5
    """Side of the grid of filters that reads the image."""
    write_size: Size = 5
    """Side of the grid of filters that writes on the canvas."""


class ImageGenerationTask(ImageTask):
    name = "image-generation"
    purpose = "Draw images like those of the data."
    preset = "draw"
    Settings = DrawSettings
    settings: DrawSettings
    refused_settings: ClassVar[Mapping[str, str]] = {"label_smoothing": "there is no label"}
    encoders = ("none",)
    target_kind = "nothing"
    source = UnlabeledImageSource()
    target = NoTarget()
    balances_experts = False
    loss_unit, speed_unit = "image", "images"
    next_command = ("generate", "--samples", "100", "--out", "drawings.png")
    generate_options = ("samples", "seed", "out", "attention")

    def settings_read(self) -> set[str]:
        return super().settings_read() | keys_below("model", VECTOR_STACK)

    def check(self) -> None:
        super().check()
        data = self.config.data
        if data.augment.mixup or sees_several_views(self.config) or data.image.channels != 1:
            raise ValueError(
                "a drawing is gray and of one view: set data.image.channels=1, and leave out "
                "data.augment.mixup, data.image.tta and data.image.tta_scales"
            )

    def new_model(self) -> nn.Module:
        return self._model_for_size(self.processor.source.size)

    def example_model(self) -> nn.Module:
        return self._model_for_size(self.config.data.image.size)

    def _model_for_size(self, size: int) -> DrawModel:
        sizes = self.settings
        return DrawModel(
            self.config.model,
            size,
            size,
            steps=sizes.steps,
            latent=sizes.latent_size,
            read=sizes.read_size,
            write=sizes.write_size,
        )

    def objective(self, preview_examples: Any = None) -> DrawObjective:
        return DrawObjective(self.model)

    def baseline(self, train: SplitData[ImageExamples], held_out: SplitData[ImageExamples]) -> Baseline:
        """Return the nats of an image whose pixels are independent, each white at the rate of training."""
        batches, size = self.example_batches(train.examples), self.config.data.image.size
        white = torch.ones(size, size)  # one white and one black image more, so that no pixel is certain
        for index in range(batches.per_epoch):
            white += batches.batch(0, index).columns["source"][:, 0].sum(0)
        rates = white / (len(train) + 2)
        batches, nats = self.eval_batches(held_out), 0.0
        for index in range(batches.per_epoch):
            images = batches.batch(0, index).columns["source"][:, 0]
            nats += float(F.binary_cross_entropy(rates.expand_as(images), images, reduction="sum"))
        name = "independent pixels, each white as often as in training"
        return Baseline(name, "loss", nats / len(held_out), higher_is_better=False, is_rate=False)

    def summarize(self, prepared: PreparedData[PairProcessor, SplitData[ImageExamples]]) -> TaskSummary:
        size = self.config.data.image.size
        task = f"{self.name}: {size} x {size} gray pixels in {self.settings.steps} steps"
        return TaskSummary("images", task, None, self.speed_unit)

    def answers(self, examples: Examples, top: int, progress: ProgressCallback) -> list[Answer]:
        raise UserError("a model that generates images predicts nothing: use foveal generate, or evaluate")

    def check_generate(self, request: GenerateRequest) -> None:
        if request.unknown_options(self.generate_options):
            raise UserError(f"{request.run} draws: leave out all but --samples, --seed, --out, --attention")
        check_drawing_paths(request)

    def generate(
        self, request: GenerateRequest, log: Log, progress: ProgressCallback
    ) -> Iterator[GenerationEvent]:
        return generate_drawings(self.model, request, progress, self.together)
