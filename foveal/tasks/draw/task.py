"""Images that a model learns to draw."""

from typing import Any

from torch import nn

from foveal.config import Config
from foveal.core.errors import UserError
from foveal.core.progress import Watch
from foveal.data.core.examples import Examples
from foveal.data.core.prepared_data import Prepared
from foveal.data.core.split_data import Part
from foveal.data.images.image_examples import Pictures
from foveal.tasks.base import Chosen, Described
from foveal.tasks.draw.model import Draw
from foveal.tasks.draw.objective import DrawTask
from foveal.tasks.draw.unlabeled_images import UnlabelledForm, UnlabelledInputs
from foveal.tasks.image_source import PicturedKind


class DrawKind(PicturedKind):
    def __init__(self) -> None:
        super().__init__(UnlabelledForm())

    def model(self, config: Config, inputs: UnlabelledInputs) -> nn.Module:
        return Draw(config.model, inputs.size, inputs.size)

    def outline(self, config: Config) -> nn.Module:
        return Draw(config.model, config.data.image.size, config.data.image.size)

    def task(self, config: Config, model: Any, inputs: UnlabelledInputs, shown: Any = None) -> DrawTask:
        return DrawTask(model)

    def describe(self, config: Config, data: Prepared[UnlabelledInputs, Part[Pictures]]) -> Described:
        draw, size = config.model.draw, config.data.image.size
        told = f"draw: {size} x {size} grey pixels in {draw.steps} steps"
        return Described("images", told, None, "images")

    def found(self, config: Config, model: Any, inputs: Any, examples: Examples, watch: Watch) -> list[str]:
        raise UserError("a model that draws has no answers: use foveal generate, or evaluate")

    def judge(self, config: Config, model: Any, inputs: Any, data: Any, chosen: Chosen, watch: Watch) -> None:
        """The bound alone."""
