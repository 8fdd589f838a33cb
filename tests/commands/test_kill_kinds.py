"""SIGKILL of runs of every kind that sees: resumed, each ends bit-equal to one that was never killed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands import test_captions, test_frames, test_images, test_vqa
from tests.commands.killed_runs import check_killed_run


def shapes() -> None:
    test_captions.write_shapes(count=60)


def questions() -> None:
    test_vqa.write_questions(count=40)


CAPTION = (*test_captions.SMALL, "model.dropout=0.2", "data.augment.crop=pad", "training.ema_decay=0.9")
ASK = (*test_vqa.SMALL, "model.dropout=0.1", "data.augment.crop=pad")
KINDS: dict[str, tuple[Callable[[], object], str, tuple[str, ...]]] = {
    "image-classification": (
        test_images.write_images,
        "squares",
        (*test_images.SMALL, "data.augment.mixup=0.5"),
    ),
    "glimpses": (
        test_images.write_images,
        "squares",
        (*test_images.SMALL, "--model", "glimpses", "model.width=24"),
    ),
    "captioning": (shapes, "shapes", ("--model", "captioning", *CAPTION)),
    "captioning-hard-attention": (shapes, "shapes", ("--model", "captioning-hard-attention", *CAPTION)),
    "frame-tagging": (test_frames.write_films, "films.npz", ("--model", "frame-tagging", *test_frames.SMALL)),
    "vqa": (questions, "shapes", ("--task", "vqa", *ASK)),
}
"""How data are written, where, and the settings."""


@pytest.mark.parametrize("kind", KINDS)
def test_behind_a_checkpoint(here: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    check_killed_run(here, monkeypatch, *KINDS[kind])
