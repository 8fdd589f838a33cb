"""Views of images: on networks that they fit, with the model as before and the same again; and refusals."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from foveal.core.errors import UserError
from foveal.core.progress import no_progress
from foveal.inspection.adversarial.compute import random_change
from foveal.inspection.image_gradients import choose_image, pixel_limits
from foveal.inspection.panels import Images, Tile
from foveal.inspection.payload import Payload
from foveal.inspection.registry import VIEWS
from tests.support.image_session import ImageSession, image_session

SMALL = {
    "saliency": {"row": 3},
    "adversarial": {"row": 3},
    "class-images": {"steps": 3},
    "inversion": {"row": 3, "steps": 3},
    "style-transfer": {"row": 3, "steps": 3},
}
# Nothing changes the label of these random weights.
TILES = {"saliency": 5, "adversarial": 1, "class-images": 3, "inversion": 6, "style-transfer": 3}
PATCHES = (
    "model.encoder.kind=patches",
    "model.encoder.patch_size=4",
    "model.encoder.width=16",
    "model.encoder.layers=5",
)


def quiet(_: str) -> None: ...


def compute(run: ImageSession, name: str, **options: Any) -> Payload:
    view = VIEWS[name]
    assert view.fits(run) == ""
    return view.compute(run, view.Options(**SMALL[name] | options), quiet, no_progress)


def tiles_of(payload: Payload) -> list[Tile]:
    (images,) = payload.panels
    assert isinstance(images, Images)
    return images.tiles()


@pytest.fixture(scope="module")
def run() -> ImageSession:
    return image_session("model.encoder.network=resnet-20")


@pytest.mark.parametrize("name", SMALL)
def test_the_model_is_as_before(name: str, run: ImageSession) -> None:
    before = {key: value.clone() for key, value in run.model.state_dict().items()}
    wanted = [parameter.requires_grad for parameter in run.model.parameters()]
    payload = compute(run, name)
    assert not any(module.training for module in run.model.modules())
    assert wanted == [parameter.requires_grad for parameter in run.model.parameters()]
    assert all(parameter.grad is None for parameter in run.model.parameters())
    assert all(torch.equal(value, before[key]) for key, value in run.model.state_dict().items())
    assert not any(module._forward_hooks for module in run.model.modules())
    tiles = tiles_of(payload)
    assert len(tiles) == TILES[name]
    if name != "class-images":
        assert np.array_equal(tiles[0].pixels, run.split.examples[3])
        assert "test, row 3" in payload.title
    again = compute(run, name)
    for tile, other in zip(tiles, tiles_of(again), strict=True):
        assert np.array_equal(tile.pixels, other.pixels)
    assert payload.to_json() == again.to_json()


@pytest.mark.parametrize("name", ["saliency", "adversarial", "class-images", "inversion"])
@pytest.mark.parametrize("settings", [PATCHES, ("model.encoder.network=linear",)], ids=["patches", "linear"])
def test_on_other_networks(name: str, settings: tuple[str, ...]) -> None:
    run = image_session(*settings, images=5)
    if name == "inversion" and settings is not PATCHES:
        assert "no layers before its head" in VIEWS[name].fits(run)
        return
    assert compute(run, name).facts


def test_of_a_linear_classifier_the_gradient_is_its_template() -> None:
    run = image_session("model.encoder.network=linear")
    payload = compute(run, "saliency", label="owl")
    template = run.model.head.projection.weight[2].detach().view(8, 8, 3).abs().amax(2)
    torch.testing.assert_close(torch.tensor(payload.values["maps"]["gradient"]), template)
    image = choose_image(run, VIEWS["saliency"].Options(row=3), quiet).tensor
    part = (run.model.head.projection.weight[2].detach().view(8, 8, 3).permute(2, 0, 1) * image).sum(0)
    found = torch.tensor(payload.values["maps"]["integrated gradients"])
    torch.testing.assert_close(found, part, rtol=1e-4, atol=1e-5)
    assert abs(payload.values["gap"]) < 1e-4


def test_the_most_salient_patches_cost_most() -> None:
    """Of a classifier that reads one corner, that corner is removed first."""
    run = image_session("model.encoder.network=linear")
    with torch.no_grad():
        weight = run.model.head.projection.weight.view(3, 8, 8, 3)
        weight[:, 1:], weight[:, :, 1:] = 0, 0
        weight[1, 0, 0] = 0.5 * torch.sign(
            choose_image(run, VIEWS["saliency"].Options(row=3), quiet).tensor[:, 0, 0]
        )
    view = VIEWS["saliency"]
    *removed, random = view.ablate(run, view.Options(row=3, label="dog"), quiet)
    assert len(removed) == 4
    for each in removed[:1] + removed[2:3]:
        assert each.before == random.before >= random.after > each.after
        assert each.outcome == "dog"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("saliency", {"label": "bird"}, "--label bird: the run has no such label"),
        ("saliency", {"row": 99}, "--row 99"),
        ("saliency", {"text": "a cat"}, "--text"),
        ("saliency", {"noise": -1.0}, "--noise -1: expected 0 or more"),
        ("adversarial", {"steps": 0}, "--steps 0: expected 1 to 1,000"),
        ("class-images", {"blur": -0.5}, "--blur -0.5: expected 0 or more"),
        (
            "inversion",
            {"layer": "encoder.blocks.99"},
            "--layer encoder.blocks.99: the blocks of this run are",
        ),
        ("inversion", {"steps": 0}, "--steps is 1 or more"),
        ("style-transfer", {"weight": -1.0}, "--weight and --tv are 0 or more"),
    ],
)
def test_options_that_do_not_fit(name: str, options: dict[str, Any], message: str, run: ImageSession) -> None:
    with pytest.raises(UserError, match=message):
        compute(run, name, **options)


def test_the_label_to_reach_is_another() -> None:
    run = image_session("model.encoder.network=linear")
    before = compute(run, "adversarial").values["before"]["label"]
    with pytest.raises(UserError, match=f"--label {before}: the run predicts this label already"):
        compute(run, "adversarial", label=before)
    other = next(label for label in run.objective.labels if label != before)
    payload = compute(run, "adversarial", label=other, steps=4)
    assert payload.values["after"]["label"] == other
    first, difference, last, random = tiles_of(payload)
    changes = last.pixels.astype(int) - first.pixels
    assert np.abs(changes).max() <= payload.values["size"] + 0.51
    shown = (difference.pixels.astype(float) - 127.5) / 127.5 * payload.values["size"]
    assert np.abs(changes - shown).max() < 0.6
    assert random.captions[1].text == "image + random"


def test_the_random_change_and_the_rounding_are_those_of_the_image() -> None:
    """Both by hand: the image with random signs of the same size, and the pixels that are shown."""
    run = image_session("model.encoder.network=linear")
    before = compute(run, "adversarial").values["before"]["label"]
    other = next(label for label in run.objective.labels if label != before)
    image, limits = choose_image(run, VIEWS["adversarial"].Options(row=3), quiet).tensor, pixel_limits(run)
    statistics = run.processor.source.statistics
    sizes = set()
    for seed in (0, 5):
        payload = compute(run, "adversarial", label=other, seed=seed)
        sizes.add(payload.values["size"])
        first, _, last, random = tiles_of(payload)
        by_hand = (last.pixels - np.array(statistics.mean)) / np.array(statistics.std)
        changed = random_change(image, payload.values["size"], limits, seed)
        for name, read in (
            ("random", changed),
            ("rounded", torch.from_numpy(by_hand).permute(2, 0, 1).float()),
        ):
            with torch.no_grad():
                shares = run.model(read[None])[0].softmax(0)
            assert payload.values[name]["label"] == run.objective.labels[int(shares.argmax())]
            assert payload.values[name]["probability"] == pytest.approx(float(shares.max()), rel=1e-5)
        assert np.abs(random.pixels.astype(int) - first.pixels).max() <= payload.values["size"] + 0.51
        assert dict(payload.facts)["random"].startswith(payload.values["random"]["label"])
        assert f"{100 * payload.values['rounded']['probability']:.1f} %" in dict(payload.facts)["8 bits"]
    assert len(sizes) == 1, "the seed is that of the random change alone"


@pytest.mark.parametrize("name", SMALL)
def test_runs_without_gradients_to_pixels_are_refused(name: str, run: ImageSession) -> None:
    features = image_session(preset="hog", images=1)
    assert "network=hog has none" in VIEWS[name].fits(features)
    glimpses = replace(run, objective=SimpleNamespace())
    assert "needs a network that labels images" in VIEWS[name].fits(glimpses)
