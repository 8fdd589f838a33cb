"""The view `adversarial` of a run: the smallest change of an image's pixels that changes its label."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.core.whole_number import WholeNumber
from foveal.inspection.adversarial.compute import (
    Adversarial,
    make_attack,
    random_change,
    smallest_change,
)
from foveal.inspection.chosen_input import InputOptions
from foveal.inspection.image_gradients import (
    ChosenImage,
    choose_image,
    frozen,
    gradient_refusal,
    label_number,
    logits_of,
    pixel_limits,
    standardized,
)
from foveal.inspection.panels import Caption, ImageRow, Images, Tile
from foveal.inspection.payload import Payload
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun
from foveal.inspection.view import View

CAVEAT = (
    "the smallest change of this search, not of all; it is made for this image and this model, and says "
    "nothing about noise: see the random change of the same size"
)
MAX_STEPS = 1000
"""Each attempt of the search takes so many steps."""


@dataclass(frozen=True)
class AdversarialOptions(InputOptions):
    label: str | None = None
    """The label to reach; any but the predicted one if not given."""
    steps: WholeNumber = 1
    """Steps along the gradient; 1 is the fast gradient sign method."""
    seed: WholeNumber = 0
    """The seed of the random change for comparison."""


@dataclass(frozen=True)
class LabeledImage:
    """An image with the label that the run predicts."""

    pixels: UInt8[np.ndarray, "H W C"]
    label: str
    probability: float

    def to_json(self) -> dict[str, Any]:
        return {"label": self.label, "probability": self.probability}

    def tile(self, *lines: str) -> Tile:
        first = Caption(f"{self.label} {100 * self.probability:.0f} %")
        return Tile(self.pixels, (first, *(Caption(line, "muted") for line in lines)))


@register_view("adversarial")
class AdversarialView(View[AdversarialOptions]):
    summary = "The smallest change of an image's pixels that changes its label."
    Options = AdversarialOptions

    def fits(self, run: InspectedRun) -> str:
        return gradient_refusal(run)

    def compute(
        self, run: InspectedRun, options: AdversarialOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        if not 1 <= options.steps <= MAX_STEPS:
            raise UserError(f"--steps {options.steps}: expected 1 to {MAX_STEPS:,}")
        image, labels = choose_image(run, options, log), run.objective.labels
        target = None if options.label is None else label_number(labels, options.label)
        with frozen(run.model):
            before = _label_image(run, image.tensor)
            if target is not None and labels[target] == before.label:
                raise UserError(f"--label {options.label}: the run predicts this label already; name another")
            limits = pixel_limits(run)
            attack = make_attack(run.model, labels.index(before.label), target)
            progress(0, 1)
            changed = smallest_change(run.model, attack, image.tensor, options.steps, limits)
            if changed is None:
                return _unchanged(run, image, before, options)
            after = _label_image(run, changed.image)
            noise = _label_image(run, random_change(image.tensor, changed.size, limits, options.seed))
            rounded = _label_image(run, standardized(after.pixels, run))
            difference = (changed.image - image.tensor) / limits.level
        tiles = (
            before.tile(f"correct: {image.reference}" if image.reference else "the image"),
            Tile(
                _difference_pixels(difference, changed.size),
                (
                    Caption("difference"),
                    Caption(f"white {changed.size:.2g}, black -{changed.size:.2g}", "muted"),
                ),
            ),
            after.tile("image + difference"),
            noise.tile("image + random", "of the same size"),
        )
        return _payload(run, image, options, changed, (before, after, noise, rounded), tiles)


def _payload(
    run: InspectedRun,
    image: ChosenImage,
    options: AdversarialOptions,
    changed: Adversarial,
    shown: tuple[LabeledImage, LabeledImage, LabeledImage, LabeledImage],
    tiles: tuple[Tile, ...],
) -> Payload:
    before, after, noise, rounded = shown
    path, size = str(run.run.path), f"{changed.size:.3g} of 255 levels"
    method = "one step" if options.steps == 1 else f"{options.steps} steps"
    facts = (
        ("image", image.name),
        ("before", _label_text(before)),
        ("after", _label_text(after)),
        ("change", f"{size} at most, by {method}"),
        ("random", f"{_label_text(noise)}, after a random change of the same size"),
        ("8 bits", f"{_label_text(rounded)}, after rounding to whole levels"),
    )
    values: dict[str, Any] = {"run": path, "image": image.name, "size": changed.size, "steps": options.steps}
    names = ("before", "after", "random", "rounded")
    values |= {name: one.to_json() for name, one in zip(names, shown, strict=True)}
    title = f"{image.name}: a change of {size} turns {before.label} into {after.label}"
    panels = (Images("", (ImageRow(tiles),), 1.7),)
    return Payload("adversarial", path, title, panels, CAVEAT, "approximated", facts, values)


def _unchanged(
    run: InspectedRun, image: ChosenImage, before: LabeledImage, options: AdversarialOptions
) -> Payload:
    """Return the payload of an image whose label no change of the search changes."""
    goal = "another label" if options.label is None else options.label
    facts = (
        ("image", image.name),
        ("before", _label_text(before)),
        ("after", f"no change up to 255 levels reaches {goal} in {options.steps} steps"),
    )
    path = str(run.run.path)
    panels = (Images("", (ImageRow((before.tile("the image"),)),), 1.7),)
    values: dict[str, Any] = {"run": path, "image": image.name, "size": None, "steps": options.steps}
    values |= {"before": before.to_json()}
    title = f"{image.name}: no change of the search turns {before.label} into {goal}"
    return Payload("adversarial", path, title, panels, CAVEAT, "approximated", facts, values)


def _label_text(shown: LabeledImage) -> str:
    return f"{shown.label}, {100 * shown.probability:.1f} %"


def _label_image(run: InspectedRun, image: Float[Tensor, "C H W"]) -> LabeledImage:
    with torch.no_grad():
        shares = logits_of(run.model, image[None])[0].softmax(0)
    best = int(shares.argmax())
    pixels = run.processor.source.statistics.to_pixels(image)
    return LabeledImage(pixels, run.objective.labels[best], float(shares[best]))


def _difference_pixels(levels: Float[Tensor, "C H W"], size: float) -> UInt8[np.ndarray, "H W C"]:
    """Return a difference in levels as pixels: gray is 0, white the size, black its opposite."""
    shares = (levels / size).clamp(-1, 1).permute(1, 2, 0).cpu()
    pixels: UInt8[np.ndarray, "H W C"] = (127.5 + 127.5 * shares).round().byte().numpy()
    return pixels
