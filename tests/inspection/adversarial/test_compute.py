"""The smallest change of a linear classifier is known in closed form."""

import pytest
import torch

from foveal.inspection.adversarial.compute import make_attack, perturb, random_change, smallest_change
from foveal.inspection.image_gradients import PixelLimits
from tests.support.linear_classifier import WIDE, LinearClassifier


@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize("targeted", [False, True])
def test_of_two_classes_the_smallest_change_is_known(steps: int, targeted: bool) -> None:
    """The margin `m = f_a - f_b` shrinks by `e * level * |w_a - w_b|_1` of each level e."""
    model, image = LinearClassifier(2), torch.randn(3, 6, 6)
    logits = model(image[None])[0].detach()
    label = int(logits.argmax())
    slope = float((model.weight[0] - model.weight[1]).abs().sum().detach())
    closed_form = float(logits[label] - logits[1 - label]) / (4 * slope)
    attack = make_attack(model, label, 1 - label if targeted else None)
    found = smallest_change(model, attack, image, steps, WIDE)
    assert found is not None
    assert found.size == pytest.approx(closed_form, rel=1e-3)
    assert found.size >= closed_form
    assert float((found.image - image).abs().max()) == pytest.approx(4 * found.size, rel=1e-4)
    assert int(model(found.image[None])[0].argmax()) == 1 - label


def test_a_step_is_the_sign_of_the_gradient_within_black_and_white() -> None:
    model, image = LinearClassifier(3), torch.randn(3, 6, 6)
    limits = PixelLimits(torch.full((3, 1, 1), -1.0), torch.tensor([1.55, 1.55, 254.0])[:, None, None])
    changed = perturb(lambda images: model(images)[:, 2], image, 7.0, 1, limits)
    level = torch.tensor([0.01, 0.01, 1.0])[:, None, None]
    expected = (image + 7 * level * model.weight[2].detach().sign()).clamp(limits.black, limits.white)
    torch.testing.assert_close(changed, expected)
    several = perturb(make_attack(model, 0, 1).score, image, 7.0, 5, limits)
    inside = image.clamp(limits.black, limits.white)
    assert ((several - inside).abs() <= 7.001 * level).all()


def test_a_label_that_nothing_changes() -> None:
    model = LinearClassifier(2)
    torch.nn.init.zeros_(model.weight)
    label = int(model.bias.argmax())
    assert smallest_change(model, make_attack(model, label, None), torch.randn(3, 6, 6), 1, WIDE) is None


def test_noise_changes_every_pixel_alike() -> None:
    image = torch.randn(3, 6, 6)
    changes = (random_change(image, 2.5, WIDE, 0) - image) / 4
    torch.testing.assert_close(changes.abs(), torch.full_like(changes, 2.5), rtol=1e-4, atol=1e-4)
    assert abs(float(changes.mean())) < 0.8
    assert torch.equal(random_change(image, 2.5, WIDE, 3), random_change(image, 2.5, WIDE, 3))
    assert not torch.equal(random_change(image, 2.5, WIDE, 3), random_change(image, 2.5, WIDE, 4))
