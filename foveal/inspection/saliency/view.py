"""The view `saliency` of a run: the pixels that the logit of a class depends on, by four methods."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback, no_progress
from foveal.core.whole_number import WholeNumber
from foveal.inspection.chosen_input import InputOptions
from foveal.inspection.image_gradients import (
    ChosenImage,
    ImageScore,
    choose_image,
    class_log_probability,
    class_score,
    frozen,
    gradient_refusal,
    label_number,
    logits_of,
    score_gradient,
)
from foveal.inspection.panels import Caption, ImageRow, Images, Tile, answer_role
from foveal.inspection.payload import Payload
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun
from foveal.inspection.saliency.compute import (
    gradient_size,
    integrated_gradients,
    occlusion,
    random_patches,
    salient_patches,
    smooth_gradient,
)
from foveal.inspection.view import Ablation, View

SAMPLES, STEPS = 48, 64
"""Samples of SmoothGrad, and steps of integrated gradients."""
PATCHES_PER_SIDE, ABLATED_SHARE, RANDOM_SETS = 8, 0.1, 20
"""Patches along a side that are removed, their share, and random sets of as many for comparison."""
CLIPPED_SHARE = 0.01
"""The largest part of a map, drawn like the value below it, so that single pixels do not hide the rest."""
CAVEAT = (
    "gradients say what an infinitely small change of a pixel does, and are noisy; integrated gradients and "
    "occlusion depend on the baseline, here the mean color; none of them says why the model decides: compare "
    "with --control, and with what it costs to remove the patches"
)


@dataclass(frozen=True)
class SaliencyOptions(InputOptions):
    label: str | None = None
    """The class; the predicted one if not given."""
    noise: float = 0.02
    """The standard deviation of SmoothGrad's noise, as a share of the range of the image's values."""
    seed: WholeNumber = 0
    """The seed of SmoothGrad's noise."""


class SaliencyMap(NamedTuple):
    method: str
    values: Float[Tensor, "H W"]
    signed: bool


@dataclass(frozen=True)
class Saliency:
    """The maps of an image for a class."""

    run: str
    image: ChosenImage
    label: str
    predicted: str
    probability: float
    """The probability of the label."""
    logit: float
    noise: float
    maps: tuple[SaliencyMap, ...]
    change: float
    gap: float
    """f(x) - f(b) of integrated gradients, and what they do not sum to."""

    def payload(self) -> Payload:
        """Return the image and its maps side by side."""
        role = answer_role(self.predicted, self.image.reference)
        captions = [Caption(self.predicted, role)]
        if self.image.reference not in (None, self.predicted):
            captions.append(Caption(f"correct: {self.image.reference}"))
        tiles = [Tile(self.image.pixels, tuple(captions))]
        for each in self.maps:
            scale = Caption(f"{'black, white' if each.signed else 'white'}: {_largest(each):.2g}", "muted")
            tiles.append(Tile(map_pixels(each), (Caption(each.method), scale)))
        title = f"{self.image.name}: what the logit of {self.label} depends on"
        facts = (
            ("image", self.image.name),
            ("class", f"{self.label}: logit {self.logit:.3f}, probability {100 * self.probability:.1f} %"),
            ("predicted", self.predicted),
            ("complete", f"integrated gradients sum to {self.change + self.gap:.4f} of {self.change:.4f}"),
            ("gap", f"{100 * abs(self.gap) / max(abs(self.change), 1e-12):.2f} % at {STEPS} steps"),
            ("smoothgrad", f"{SAMPLES} samples, noise {self.noise:g} of the range"),
        )
        values: dict[str, Any] = {"run": self.run, "image": self.image.name, "label": self.label}
        values |= {"predicted": self.predicted, "logit": self.logit, "probability": self.probability}
        values |= {"maps": {each.method: each.values.tolist() for each in self.maps}}
        values |= {"change": self.change, "gap": self.gap}
        panels = (Images("", (ImageRow(tuple(tiles)),), 1.6),)
        return Payload("saliency", self.run, title, panels, CAVEAT, "approximated", facts, values)


@register_view("saliency")
class SaliencyView(View[SaliencyOptions]):
    summary = "The pixels of an image that the logit of a class depends on, by four methods."
    Options = SaliencyOptions
    progress = "methods"

    def fits(self, run: InspectedRun) -> str:
        return gradient_refusal(run)

    def compute(
        self, run: InspectedRun, options: SaliencyOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        image = choose_image(run, options, log)
        with frozen(run.model):
            return compute_saliency(run, image, options, progress).payload()

    def ablate(self, run: InspectedRun, options: SaliencyOptions, log: Log) -> tuple[Ablation, ...]:
        """Remove the most salient patches of each method, and as many random patches."""
        image = choose_image(run, options, log)
        with frozen(run.model):
            saliency = compute_saliency(run, image, options, no_progress)
            score = class_log_probability(run.model, run.objective.labels.index(saliency.label))
            return ablate_patches(score, image.tensor, saliency.maps, saliency.label, options.seed)


def compute_saliency(
    run: InspectedRun, image: ChosenImage, options: SaliencyOptions, progress: ProgressCallback
) -> Saliency:
    """Return the maps of an image by all methods.

    Raises: UserError: the run has no such label, or the noise is negative.
    """
    labels, x = run.objective.labels, image.tensor
    with torch.no_grad():
        logits = logits_of(run.model, x[None])[0]
    predicted = int(logits.argmax())
    label = predicted if options.label is None else label_number(labels, options.label)
    score, baseline = class_score(run.model, label), torch.zeros_like(x)
    if options.noise < 0:
        raise UserError(f"--noise {options.noise:g}: expected 0 or more")
    methods = 4
    progress(0, methods)
    gradient = gradient_size(score_gradient(score, x[None])[0])
    progress(1, methods)
    smooth = gradient_size(smooth_gradient(score, x, options.noise, SAMPLES, options.seed))
    progress(2, methods)
    integrated = integrated_gradients(score, x, baseline, STEPS)
    progress(3, methods)
    window = max(1, x.shape[1] // 4)
    occluded = occlusion(score, x, baseline, window, max(1, window // 4))
    maps = (
        SaliencyMap("gradient", gradient, False),
        SaliencyMap("SmoothGrad", smooth, False),
        SaliencyMap("integrated gradients", integrated.attributions.sum(0), True),
        SaliencyMap("occlusion", occluded, True),
    )
    probability, logit = float(logits.softmax(0)[label]), float(logits[label])
    path = str(run.run.path)
    names = labels[label], labels[predicted]
    return Saliency(
        path, image, *names, probability, logit, options.noise, maps, integrated.change, integrated.gap
    )


def ablate_patches(
    score: ImageScore, image: Float[Tensor, "C H W"], maps: tuple[SaliencyMap, ...], label: str, seed: int
) -> tuple[Ablation, ...]:
    """Return the score without the most salient patches of each map, and without random ones."""
    side = max(1, image.shape[1] // PATCHES_PER_SIDE)
    generator = torch.Generator().manual_seed(seed)
    shape = image.shape[1], image.shape[2]
    random = [random_patches(shape, side, ABLATED_SHARE, generator) for _ in range(RANDOM_SETS)]
    before, outcome = _score_without(score, image, [torch.zeros(shape, dtype=torch.bool)]), label
    share = f"{100 * ABLATED_SHARE:.0f} % of the patches"
    ablations = [
        Ablation(
            f"the {share} most salient by {each.method}",
            outcome,
            before,
            _score_without(score, image, [salient_patches(each.values, side, ABLATED_SHARE)]),
        )
        for each in maps
    ]
    mean = f"{share} at random (mean of {RANDOM_SETS})"
    return (*ablations, Ablation(mean, outcome, before, _score_without(score, image, random)))


def _score_without(
    score: ImageScore, image: Float[Tensor, "C H W"], masks: list[Bool[Tensor, "H W"]]
) -> float:
    """Return the mean score of an image whose masked pixels have the mean color."""
    images = torch.stack([image.masked_fill(mask.to(image.device), 0.0) for mask in masks])
    with torch.no_grad():
        return float(score(images).mean())


def _largest(each: SaliencyMap) -> float:
    """Return the value that is drawn as white."""
    quantile = torch.quantile(each.values.float().abs().flatten(), 1 - CLIPPED_SHARE)
    return float(quantile) or float(each.values.abs().max()) or 1.0


def map_pixels(each: SaliencyMap) -> UInt8[np.ndarray, "H W 1"]:
    """Return the map as gray pixels: 0 is black, or gray where values have signs."""
    shares = (each.values / _largest(each)).clamp(-1, 1)
    levels = 127.5 + 127.5 * shares if each.signed else 255 * shares
    pixels: UInt8[np.ndarray, "H W 1"] = levels.round().byte().cpu().numpy()[:, :, None]
    return pixels
