"""Small changes of an image that change its label (Szegedy et al. 2014).

    x' = clip(x + e * sign(g)),   g = d log p(target) / dx, or -d log p(label) / dx without a target

This is one step of the fast gradient sign method (Goodfellow et al. 2015, section 4). With several steps,
each goes e / steps along the gradient at the last image, so that no pixel changes by more than e (Kurakin et
al. 2017). The smallest e that changes the label is searched by doubling and then by bisection.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveal.inspection.image_gradients import (
    ImageScore,
    PixelLimits,
    class_log_probability,
    logits_of,
    score_gradient,
)

BISECTIONS = 12
"""Halvings of the interval that has the smallest change."""
FIRST_CHANGE = 1 / 16
"""The first change that is tried, in 255ths of the range from black to white."""


class Attack(NamedTuple):
    """The score to raise, the label to change, and the label to reach; any other label if None."""

    score: ImageScore
    label: int
    target: int | None

    def succeeds(self, prediction: int) -> bool:
        return prediction != self.label if self.target is None else prediction == self.target


class Adversarial(NamedTuple):
    image: Float[Tensor, "C H W"]
    size: float
    """The largest change of a pixel, in 255ths of the range from black to white."""


def make_attack(model: nn.Module, label: int, target: int | None) -> Attack:
    """Return the attack on an image of a label."""
    if target is not None:
        return Attack(class_log_probability(model, target), label, target)
    own = class_log_probability(model, label)
    return Attack(lambda images: -own(images), label, None)


def perturb(
    score: ImageScore, image: Float[Tensor, "C H W"], size: float, steps: int, limits: PixelLimits
) -> Float[Tensor, "C H W"]:
    """Return the image with each pixel changed by at most `size` levels, to raise its score."""
    changed = image
    for _ in range(steps):
        direction = score_gradient(score, changed[None])[0].sign()
        changed = (changed + size / steps * limits.level * direction).clamp(limits.black, limits.white)
    return changed


def smallest_change(
    model: nn.Module, attack: Attack, image: Float[Tensor, "C H W"], steps: int, limits: PixelLimits
) -> Adversarial | None:
    """Return the image with the smallest change that succeeds; None if even 255 levels do not.

    The search assumes that larger changes succeed, too.
    """

    def attempt(size: float) -> Float[Tensor, "C H W"] | None:
        changed = perturb(attack.score, image, size, steps, limits)
        with torch.no_grad():
            prediction = int(logits_of(model, changed[None])[0].argmax())
        return changed if attack.succeeds(prediction) else None

    failed, size = 0.0, FIRST_CHANGE
    while (changed := attempt(size)) is None:
        if size >= 255:
            return None
        failed, size = size, min(2 * size, 255.0)
    best = Adversarial(changed, size)
    for _ in range(BISECTIONS):
        middle = (failed + best.size) / 2
        if (changed := attempt(middle)) is None:
            failed = middle
        else:
            best = Adversarial(changed, middle)
    return best


def random_change(
    image: Float[Tensor, "C H W"], size: float, limits: PixelLimits, seed: int
) -> Float[Tensor, "C H W"]:
    """Return the image with each pixel changed by `size` levels up or down at random."""
    generator = torch.Generator().manual_seed(seed)
    signs = torch.randint(0, 2, image.shape, generator=generator).to(image.device) * 2 - 1
    return (image + size * limits.level * signs).clamp(limits.black, limits.white)
