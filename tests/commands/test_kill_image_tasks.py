"""SIGKILL of runs of every kind that sees: resumed, each ends bit-equal to one that was never killed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import captioned_shapes, labeled_images, shape_questions, small_films
from tests.support.killed_runs import check_killed_run


def shapes() -> None:
    captioned_shapes.write_shapes(count=60)


def questions() -> None:
    shape_questions.write_questions(count=40)


CAPTION = (*captioned_shapes.SMALL, "model.dropout=0.2", "data.augment.crop=pad", "training.ema_decay=0.9")
ASK = (*shape_questions.SMALL, "model.dropout=0.1", "data.augment.crop=pad")
KINDS: dict[str, tuple[Callable[[], object], str, tuple[str, ...]]] = {
    "image-classification": (
        labeled_images.write_images,
        "squares",
        (*labeled_images.SMALL, "data.augment.mixup=0.5"),
    ),
    "glimpses": (
        labeled_images.write_images,
        "squares",
        (*labeled_images.SMALL, "--model", "glimpses", "model.width=24"),
    ),
    "captioning": (shapes, "shapes", ("--model", "captioning", *CAPTION)),
    "captioning-hard-attention": (shapes, "shapes", ("--model", "captioning-hard-attention", *CAPTION)),
    "frame-tagging": (small_films.write_films, "films.npz", ("--model", "frame-tagging", *small_films.SMALL)),
    "vqa": (questions, "shapes", ("--task", "vqa", *ASK)),
}
"""How data are written, where, and the settings."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_behind_a_checkpoint(here: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    check_killed_run(here, monkeypatch, *KINDS[kind])
