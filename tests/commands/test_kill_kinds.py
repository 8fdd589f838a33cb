"""SIGKILL of runs of every kind that sees: resumed, each ends bit-equal to one that was never killed."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import kill
from tests.commands import (
    test_captions,
    test_frames,
    test_image_generation,
    test_images,
    test_navigation,
    test_vqa,
)
from tests.commands.strike import killed
from tests.commands.test_kill import forked


def shapes() -> None:
    test_captions.write_shapes(count=60)


def questions() -> None:
    test_vqa.write_questions(count=40)


OFTEN = (
    "training.checkpoint_seconds=1e-6",
    "training.evaluate_every=4",
    "--budget",
    "9steps",
    "--run",
    "run",
)
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
    "image-generation": (test_images.write_images, "squares", test_image_generation.TINY),
    "captioning": (shapes, "shapes", ("--model", "captioning", *CAPTION)),
    "captioning-hard-attention": (shapes, "shapes", ("--model", "captioning-hard-attention", *CAPTION)),
    "frame-tagging": (test_frames.write_films, "films.npz", ("--model", "frame-tagging", *test_frames.SMALL)),
    "vqa": (questions, "shapes", ("--task", "vqa", *ASK)),
    "navigation": (
        test_navigation.write_corridors,
        "corridors.jsonl",
        (*test_navigation.SMALL, "task.supervision=reinforce"),
    ),
}
"""How data are written, where, and the settings."""


@pytest.mark.parametrize("kind", KINDS)
def test_behind_a_checkpoint(here: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """What was saved at step 6 is all it goes on from: chance, carried states, averages, the best so far."""
    write, data, settings = KINDS[kind]
    train = ["train", data, *settings, *OFTEN]
    endings = []
    for place in (None, "after a sample"):
        folder = here / ("whole" if place is None else "struck")
        folder.mkdir()
        monkeypatch.chdir(folder)
        write()
        if place is not None:
            assert forked(folder, [place, *train], killed) == -signal.SIGKILL
        again = train if place is None else ["resume", "run"]
        assert forked(folder, again) == 0, Path("said.txt").read_text()
        endings.append(kill.ending(folder / "run"))
    first, second = endings
    steps = [one for one in first["log"] if one["kind"] == "step"]
    assert [one["step"] for one in steps] == [*range(1, 10)]
    assert all(one["gradient_norm"] > 0 for one in steps)
    assert second == first
