"""The view `class-images` of a run: for each class, an image made to raise its logit."""

from dataclasses import dataclass

import torch

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.core.whole_number import WholeNumber
from foveal.inspection.class_images.compute import START_NOISE, maximize_logits
from foveal.inspection.image_descent import noise_images
from foveal.inspection.image_gradients import frozen, gradient_refusal, label_number, logits_of, pixel_limits
from foveal.inspection.panels import Caption, ImageRow, Images, Tile
from foveal.inspection.payload import Payload
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun
from foveal.inspection.view import View

MAX_CLASSES, COLUMNS = 20, 5
"""Most classes, and images side by side."""
CAVEAT = (
    "one of many images with a high logit, beyond what real images reach; it shows what raises the logit, "
    "not what the class looks like, and depends on the start, the blur and the L2 penalty"
)


@dataclass(frozen=True)
class ClassImagesOptions:
    label: str | None = None
    """One class; the first twenty if not given."""
    steps: WholeNumber = 200
    """Steps of the ascent."""
    l2: float = 0.01
    """The weight of the squared pixels, whose mean color is 0."""
    blur: float = 1.0
    """The standard deviation of the blur in pixels; 0 is none."""
    seed: WholeNumber = 0
    """The seed of the noise at the start."""


@register_view("class-images")
class ClassImagesView(View[ClassImagesOptions]):
    summary = "For each class, an image made to raise its logit."
    Options = ClassImagesOptions
    progress = "steps"

    def fits(self, run: InspectedRun) -> str:
        return gradient_refusal(run)

    def compute(
        self, run: InspectedRun, options: ClassImagesOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        _check(options)
        labels = run.objective.labels
        numbers = range(min(len(labels), MAX_CLASSES))
        chosen = [*numbers] if options.label is None else [label_number(labels, options.label)]
        limits, size = pixel_limits(run), run.config.data.image.size
        statistics, device = run.processor.source.statistics, limits.black.device
        blank = torch.zeros(statistics.channels, size, size, device=device)
        start = noise_images(len(chosen), blank, START_NOISE, options.seed)
        ids = torch.tensor(chosen, device=device)
        with frozen(run.model):
            settings = options.steps, options.l2, options.blur
            images = maximize_logits(run.model, ids, start, limits, *settings, progress)
            with torch.no_grad():
                shown = logits_of(run.model, images)
                first = logits_of(run.model, start)
        reached = shown[range(len(chosen)), chosen].tolist()
        before = first[range(len(chosen)), chosen].tolist()
        names = [labels[number] for number in chosen]
        tiles = [
            Tile(pixels, (Caption(name), Caption(f"logit {logit:.1f}", "muted")))
            for pixels, name, logit in zip(statistics.to_pixels(images), names, reached, strict=True)
        ]
        rows = tuple(ImageRow(tuple(tiles[at : at + COLUMNS])) for at in range(0, len(tiles), COLUMNS))
        won = sum(int(row.argmax()) == number for row, number in zip(shown, chosen, strict=True))
        facts = [
            ("classes", f"{len(chosen)} of {len(labels):,}"),
            (
                "logits",
                f"from {min(reached):.2f} to {max(reached):.2f}; of the noise {max(before):.2f} at most",
            ),
            ("predicted", f"{won} of {len(chosen)} images as their class"),
            (
                "ascent",
                f"{options.steps} steps, L2 {options.l2:g}, blur {options.blur:g}, seed {options.seed}",
            ),
        ]
        path = str(run.run.path)
        by_class = [
            {"label": name, "logit": logit, "before": old}
            for name, logit, old in zip(names, reached, before, strict=True)
        ]
        title = f"{path}: images that raise the logit of each class"
        values = {"run": path, "classes": by_class}
        panels = (Images("", rows, 1.4),)
        return Payload("class-images", path, title, panels, CAVEAT, "approximated", tuple(facts), values)


def _check(options: ClassImagesOptions) -> None:
    """Check the numbers.

    Raises: UserError: a number is too small.
    """
    if options.steps < 1:
        raise UserError(f"--steps {options.steps}: expected 1 or more")
    for name, value in (("l2", options.l2), ("blur", options.blur)):
        if value < 0:
            raise UserError(f"--{name} {value:g}: expected 0 or more")
