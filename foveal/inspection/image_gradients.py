"""Gradients from the logits of a classifier to the pixels of images, for views of pixels."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from foveal.config import suggest
from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.runtime import at_least_float32
from foveal.data.core.standardize import Statistics
from foveal.encoders.image import ImageEncoder
from foveal.encoders.patches import PatchEncoder
from foveal.inspection.chosen_input import InputOptions, choose_input
from foveal.inspection.run_protocols import InspectedRun
from foveal.layers.vision.handcrafted_features import StandardizedFeatures
from foveal.models.encoder import EncoderWithHead
from foveal.objectives.classification import ClassificationObjective
from foveal.objectives.predicted_labels import at_temperature

ImageScore = Callable[[Float[Tensor, "B C H W"]], Float[Tensor, " B"]]
"""Maps standardized images to a number each."""


def gradient_refusal(run: InspectedRun) -> str:
    """Return why a run has no logits of classes with gradients to pixels; an empty text if it has."""
    model, is_classifier = run.model, isinstance(run.objective, ClassificationObjective)
    if run.task.source_kind != "image" or not is_classifier or not isinstance(model, EncoderWithHead):
        return f"this view needs a network that labels images (task {run.task.name})"
    if any(isinstance(module, StandardizedFeatures) for module in model.encoder.modules()):
        network = run.config.model.encoder.network
        return f"this view needs gradients to the pixels, and model.encoder.network={network} has none"
    return ""


@contextmanager
def frozen(model: nn.Module) -> Iterator[None]:
    """Return a context with gradients, in which the model is in evaluation mode and its weights need none.

    Afterwards, mode and weights are as before.
    """
    modes = [(module, module.training) for module in model.modules()]
    parameters = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    try:
        model.eval().requires_grad_(False)
        with torch.enable_grad():
            yield
    finally:
        for module, training in modes:
            module.training = training
        for parameter, requires_grad in parameters:
            parameter.requires_grad_(requires_grad)


def logits_of(model: nn.Module, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B K"]:
    """Return the logits of K classes of standardized images, at the model's temperature."""
    return at_temperature(at_least_float32(model(images)), model)


def class_score(model: nn.Module, label: int) -> ImageScore:
    """Return the logit of a class as a function of standardized images."""
    return lambda images: logits_of(model, images)[:, label]


def class_log_probability(model: nn.Module, label: int) -> ImageScore:
    """Return the log-probability of a class as a function of standardized images."""
    return lambda images: logits_of(model, images).log_softmax(1)[:, label]


def score_gradient(score: ImageScore, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B C H W"]:
    """Return the gradient of each image's score for its pixels."""
    pixels = images.detach().clone().requires_grad_()
    with torch.enable_grad():
        (gradient,) = torch.autograd.grad(score(pixels).sum(), pixels)
    return gradient


class PixelLimits(NamedTuple):
    """The standardized values of black and of white, by channel."""

    black: Float[Tensor, "C 1 1"]
    white: Float[Tensor, "C 1 1"]

    @property
    def level(self) -> Float[Tensor, "C 1 1"]:
        """A 255th of the range: the step between pixel values of 8 bits."""
        return (self.white - self.black) / 255


def pixel_limits(run: InspectedRun) -> PixelLimits:
    """Return the limits of a run's images, on the device of its model."""
    shape = (1, 1, run.processor.source.statistics.channels)
    black, white = (standardized(np.full(shape, level, np.uint8), run) for level in (0, 255))
    return PixelLimits(black, white)


class ChosenImage(NamedTuple):
    """The center of an image, as the model gets it and as pixels."""

    tensor: Float[Tensor, "C H W"]
    pixels: UInt8[np.ndarray, "H W C"]
    reference: str | None
    """The image's label; None if unknown."""
    name: str


def choose_image(run: InspectedRun, options: InputOptions, log: Log) -> ChosenImage:
    """Return the image that the options name.

    Raises: UserError: there is no such image.
    """
    chosen, statistics = choose_input(run, options, log), run.processor.source.statistics
    assert chosen.image is not None
    pixels = np.array(chosen.image[..., : statistics.channels])
    return ChosenImage(standardized(pixels, run), pixels, chosen.reference, chosen.name)


def standardized(pixels: UInt8[np.ndarray, "H W C"], run: InspectedRun) -> Float[Tensor, "C H W"]:
    """Return pixels as the model gets them, on its device."""
    statistics: Statistics = run.processor.source.statistics
    mean, std = (torch.tensor(values)[:, None, None] for values in (statistics.mean, statistics.std))
    levels = torch.from_numpy(pixels).permute(2, 0, 1).float()
    return ((levels - mean) / std).to(next(run.model.parameters()).device)


def label_number(labels: Sequence[str], label: str) -> int:
    """Return the number of a label that the user names.

    Raises: UserError: there is no such label.
    """
    if label not in labels:
        raise UserError(f"--label {label}: the run has no such label{suggest(label, labels)}")
    return labels.index(label)


def block_names(model: nn.Module) -> list[str]:
    """Return the names of the blocks of an encoder of images, from the pixels up."""
    encoder = model.get_submodule("encoder")
    if isinstance(encoder, ImageEncoder):
        return [f"encoder.blocks.{number}" for number in range(len(encoder.blocks))]
    if isinstance(encoder, PatchEncoder):
        return [f"encoder.stack.blocks.{number}" for number in range(len(encoder.stack.blocks))]
    return []
