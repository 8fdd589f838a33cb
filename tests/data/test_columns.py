"""What a column may hold: spaces around labels don't count."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foveal.config import DataConfig, ImageConfig
from foveal.data.frames import LabelOfFrame
from foveal.data.images import ImageForm
from tests.data.test_frames import clip, folder_of, table
from tests.data.test_images import PLACES, SIDE, png, scenes, write

CONFIG = DataConfig(image=ImageConfig(size=SIDE), tokenizer="word")


def read(form: Any, data: str, **settings: Any) -> list[dict[str, Any]]:
    aside: list[Any] = []
    rows = [*form.read(data, CONFIG.model_copy(update=settings), aside)]
    assert not aside
    return [row.fields for row in rows]


@pytest.mark.parametrize("place", PLACES)
def test_spaces_around_a_label_are_none_of_it(tmp_path: Path, place: str) -> None:
    labels = ["cat", " cat", "cat ", "dog"]
    pictures = {f"{number}.png": png(picture) for number, picture in enumerate(scenes(4))}
    rows = [*zip(pictures, labels, strict=True)]
    data = write(tmp_path / place, pictures | {"metadata.csv": table("label", rows)})
    assert [row["label"] for row in read(ImageForm(), data)] == ["cat", "cat", "cat", "dog"]
    np.savez(tmp_path / "a.npz", images=scenes(4), labels=np.array(labels))
    assert [row["label"] for row in read(ImageForm(), str(tmp_path / "a.npz"))] == [
        "cat",
        "cat",
        "cat",
        "dog",
    ]


def test_spaces_around_a_frame_s_label_are_none_of_it(tmp_path: Path) -> None:
    files = folder_of("c", clip(0, 3))
    files["metadata.jsonl"] = json.dumps({"file_name": "c", "labels": ["cat", " cat", "cat "]}).encode()
    assert read(LabelOfFrame(), write(tmp_path / "a", files))[0]["label"] == ["cat"] * 3
