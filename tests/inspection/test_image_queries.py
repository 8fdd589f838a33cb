"""Images that a view looks up: held-out ones with their names and labels, at their center alone."""

from types import SimpleNamespace
from typing import Any

import pytest

from foveal.config import Config, DataConfig, ImageConfig
from foveal.data import prepare_examples
from foveal.inspection.image_queries import load_image_queries, with_center_crop

pytestmark = pytest.mark.usefixtures("types_unchecked")


def test_held_out_images_have_their_names_and_labels() -> None:
    run: Any = SimpleNamespace()
    held_out = SimpleNamespace(examples="images", sources=["1.png", "2.png"], references=["cat", "dog"])
    prepared: Any = SimpleNamespace(held_out=held_out)
    queries: Any = load_image_queries(run, prepared, None, print)
    assert queries == ("images", ["1.png", "2.png"], ["cat", "dog"])


def test_named_images_are_in_order_without_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [SimpleNamespace(fields={"source": name}) for name in ("b.png", "a.png")]
    monkeypatch.setattr(prepare_examples, "read_unlabeled", lambda *_: (rows, "images", None))
    task = SimpleNamespace(data_format=None)
    run: Any = SimpleNamespace(task=task, processor=None, config=SimpleNamespace(data=None))
    queries: Any = load_image_queries(run, None, "folder", print)
    assert queries == ("images", ["b.png", "a.png"], ["", ""])


def test_only_the_center_of_an_image_is_looked_up() -> None:
    config = Config(data=DataConfig(image=ImageConfig(tta="flip", tta_scales="1,1.25")))
    task: Any = SimpleNamespace(config=config, with_config=lambda changed: changed)
    center: Any = with_center_crop(task)
    assert (center.data.image.tta, center.data.image.tta_scales) == ("none", "1")
