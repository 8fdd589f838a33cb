"""Defaults of image classification: by the number, size, colors and labels of the images."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from foveal.core.errors import UserError
from foveal.data.images.image_facts import ImageFacts, image_facts
from foveal.data.open import open_data
from foveal.interop.published.efficientnet import NAME
from foveal.models.image_networks import smallest_size
from foveal.models.network_registry import NETWORKS
from foveal.tasks import configure
from foveal.tasks.config import load_config
from foveal.tasks.defaults import DefaultsRequest
from foveal.tasks.image_classification import ImageClassificationTask
from foveal.tasks.image_defaults import PRESET_BATCH, PRESET_LR, few_batch, image_defaults
from tests.support.command_line import succeed
from tests.support.labeled_images import write_images

WORDS, DIGITS = frozenset({"cat", "dog"}), frozenset("0123")


def write_pictures(labels: str, side: int, mode: str, folder: str = "pictures") -> str:
    """Write five images of each label."""
    draw = np.random.default_rng(0)
    for label in labels.split():
        for number in range(5):
            path = Path(folder, label, f"{number}.png")
            path.parent.mkdir(parents=True, exist_ok=True)
            pixels = draw.integers(0, 255, (side, 2 * side, 3)).astype(np.uint8)
            Image.fromarray(pixels).convert(mode).save(path)
    return folder


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)

    def refuse(name: str, log: object) -> object:
        raise UserError(f"{name}: can't fetch")

    monkeypatch.setattr(configure, "published_run", refuse)


def chosen(
    facts: ImageFacts, trains: bool = False, pretrained: bool = True, batch: int = PRESET_BATCH
) -> tuple[str, dict[str, str]]:
    """Return the weights or the preset that image facts lead to, and the settings."""
    request = DefaultsRequest(open_data(".", print), trains, pretrained)
    defaults = image_defaults(facts, request, "image-classification", batch)
    return defaults.weights or defaults.preset, dict(one.split("=", 1) for one in defaults.settings)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (ImageFacts(500, WORDS, 172, True), NAME),
        (ImageFacts(500, WORDS, 64, True), NAME),
        (ImageFacts(500, WORDS, 63, True), "patch-similarities"),
        (ImageFacts(500, WORDS, 100, False), "patch-similarities"),
        (ImageFacts(500, WORDS, 128, False), NAME),
        (ImageFacts(500, DIGITS, 8, False), "patch-similarities"),
        (ImageFacts(3000, WORDS, 32, True), "image-classification"),
        (ImageFacts(6000, WORDS, 172, True), "image-classification"),
        (ImageFacts(0, WORDS, 0, True), "image-classification"),
    ],
)
def test_few_photos_start_from_published_weights_and_few_small_images_from_patches(
    facts: ImageFacts, expected: str
) -> None:
    assert chosen(facts)[0] == expected


def test_who_trains_gets_batches_by_the_number_of_images() -> None:
    preset, settings = chosen(ImageFacts(300, WORDS, 28, True), trains=True)
    assert (preset, settings["data.image.batch_size"]) == ("image-classification", "16")
    assert float(settings["optimizer.lr"]) == pytest.approx(0.1 / 8)
    assert "training.budget" not in settings
    settings = chosen(ImageFacts(300, WORDS, 28, True), trains=True, batch=32)[1]
    assert float(settings["optimizer.lr"]) == pytest.approx(0.1 / 4)
    preset_config = load_config("image-classification")
    assert (preset_config.data.image.batch_size, preset_config.optimizer.lr) == (PRESET_BATCH, PRESET_LR)
    weights, settings = chosen(ImageFacts(101, WORDS, 300, True), trains=True)
    assert (weights, settings["data.image.batch_size"]) == (NAME, "8")
    assert settings["model.head_fit"] == "ridge"
    assert chosen(ImageFacts(101, WORDS, 300, True), pretrained=False)[0] == "patch-similarities"


@pytest.mark.parametrize(("rows", "batch"), [(1, 8), (101, 8), (600, 32), (2000, 64), (20_000, 128)])
def test_an_epoch_has_several_steps(rows: int, batch: int) -> None:
    assert few_batch(rows, 128) == batch


@pytest.mark.parametrize("rows", [300, 6000])
def test_characters_are_not_mirrored(rows: int) -> None:
    assert chosen(ImageFacts(rows, DIGITS, 28, False), trains=True)[1]["data.augment.flip"] == "false"
    for words_or_photos in (ImageFacts(rows, WORDS, 28, False), ImageFacts(rows, DIGITS, 32, True)):
        assert "data.augment.flip" not in chosen(words_or_photos, trains=True)[1]


@pytest.mark.parametrize(("side", "mode", "color"), [(10, "L", False), (70, "P", True), (70, "RGBA", True)])
def test_facts_come_from_the_headers(side: int, mode: str, color: bool) -> None:
    folder = write_pictures("a b", side, mode)
    Path(folder, "a", "0.png").write_bytes(b"no image")
    facts = image_facts(open_data(folder, print).train, "label", 100)
    assert facts == ImageFacts(10, frozenset("ab"), side, color)
    assert facts.has_characters


def test_the_line_says_why_and_the_undo_works() -> None:
    write_images(count=20)
    told = succeed("train", "squares", "--run", "run").err
    assert "patch-similarities with data.image.channels=3, since 20 color images of about" in told
    assert "fitted at once, no training steps" in told
    (line,) = (line for line in told.splitlines() if line.startswith("patch-similarities"))
    undo = line.partition("; else ")[2].split()
    assert 'network = "resnet-20"' in succeed("train", "squares", *undo, "--print-config").out


def test_the_line_names_no_setting_of_the_user() -> None:
    write_pictures("1 2", 28, "L")
    told = succeed("train", "pictures", "--budget", "3steps", "optimizer.lr=0.5", "--print-config")
    assert "optimizer.lr" not in told.err
    assert "data.augment.flip=false" in told.err
    config = tomllib.loads(told.out)
    assert (config["optimizer"]["lr"], config["data"]["augment"]["flip"]) == (0.5, False)
    undone = succeed("train", "pictures", "data.augment.flip=true", "--print-config")
    assert tomllib.loads(undone.out)["data"]["augment"]["flip"] is True


def test_a_setting_of_the_model_keeps_what_suits_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Digits are not mirrored. Few images would get a model in closed form, which the user did not choose."""
    write_pictures("1 2", 28, "L")
    given = "train", "pictures", "model.initialization=kaiming", "--print-config"
    few = succeed(*given)
    assert tomllib.loads(few.out)["model"]["encoder"]["network"] == "resnet-20"
    assert "data.augment.flip" not in few.err
    monkeypatch.setattr("foveal.tasks.image_defaults.MAX_FEW_SMALL", 1)
    many = succeed(*given)
    assert tomllib.loads(many.out)["data"]["augment"]["flip"] is False
    assert "data.augment.flip=false, since mirror images" in many.err


def test_photos_without_the_weights() -> None:
    write_pictures("cat dog", 80, "RGB")
    told = succeed("train", "pictures", "--print-config")
    assert f"{NAME}: can't fetch; training goes on without published weights" in told.err
    assert 'network = "patch-similarities"' in told.out


def test_images_that_can_not_be_read_get_the_preset() -> None:
    Path("pictures/cat").mkdir(parents=True)
    Path("pictures/cat/1.png").write_bytes(b"no image")
    facts = image_facts(open_data("pictures", print).train, "label", 100)
    assert chosen(facts)[0] == ImageClassificationTask.preset


@pytest.mark.parametrize(
    ("given", "optimizer", "lr", "size"),
    [
        ("model.encoder.network=mlp", "adamw", 1e-3, 32),
        ("model.encoder.network=mlp optimizer.lr=0.5", "adamw", 0.5, 32),
        ("model.encoder.network=convnext-t", "adamw", 3e-4, 32),
        ("model.encoder.network=alexnet", "adamw", 1e-3, 64),
        ("model.encoder.network=alexnet model.encoder.stem=small", "adamw", 1e-3, 32),
        ("model.encoder.network=alexnet data.image.size=96", "adamw", 1e-3, 96),
        ("model.encoder.network=vgg-19", "adamw", 3e-4, 32),
        ("model.encoder.network=resnet-18", "momentum", 0.1, 32),
        ("model.encoder.network=resnet-56", "momentum", 0.1, 32),
        ("model.encoder.network=resnet-110", "momentum", 0.01, 32),
        ("model.encoder.network=plain-34", "adamw", 1e-3, 32),
        ("model.encoder.network=resnet-50", "adamw", 1e-3, 32),
        ("model.encoder.network=efficientnet-lite0", "adamw", 1e-3, 32),
        ("model.encoder.network=resnet-110 optimizer.name=sgd", "sgd", 0.04, 32),
        ("--model resnet-152", "adamw", 1e-3, 224),
        ("--model mlp-10", "adamw", 3e-4, 32),
        ("--model alexnet", "adamw", 1e-3, 224),
        ("--model hog model.encoder.network=visual-words", "adamw", 1e-3, 32),
    ],
)
def test_a_network_brings_the_settings_it_trains_with(
    given: str, optimizer: str, lr: float, size: int
) -> None:
    write_images(count=10)
    told = succeed("train", "squares", *given.split(), "--print-config")
    config = tomllib.loads(told.out)
    assert (config["optimizer"]["name"], config["optimizer"]["lr"]) == (optimizer, lr)
    assert config["data"]["image"]["size"] == size
    by_setting = given.startswith("model.") and optimizer == "adamw"
    assert ("is trained with optimizer.name=adamw" in told.err) == by_setting


@pytest.mark.parametrize("network", [name for name in NETWORKS if "vit" not in name])
def test_every_network_reads_the_preset_size_or_a_larger_one(network: str) -> None:
    size = smallest_size(network, 32)
    assert size == (64 if network == "alexnet" else 32)
