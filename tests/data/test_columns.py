"""What a column may hold, and which: spaces around labels don't count, and a file's name is a text too."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foveal.config import ImageConfig
from foveal.data.core.rows import Row
from foveal.data.files.data_part import open_part
from foveal.data.files.folders import FILE_FIELD, read_folder
from foveal.tasks.vqa.data_settings import VQADataConfig
from tests.support.clip_folders import clip_folder, clip_table, random_clip
from tests.support.image_folders import CONTAINERS, SIDE, encode_png, random_images, write_files
from tests.support.pair_formats import ANSWERS, CLIP_LABEL, CLIP_LABELS, IMAGE_LABEL, IMAGE_TEXT
from tests.support.question_tables import question_rows, write_question_rows

CONFIG = VQADataConfig(image=ImageConfig(size=SIDE), tokenizer="word")


def read(data_format: Any, data: str, **settings: Any) -> list[dict[str, Any]]:
    skipped: list[Any] = []
    rows = [*data_format.read(open_part(data), CONFIG.model_copy(update=settings), skipped)]
    assert not skipped
    return [row.fields for row in rows]


@pytest.mark.parametrize("location", CONTAINERS)
def test_spaces_around_a_label_are_none_of_it(tmp_path: Path, location: str) -> None:
    labels = ["cat", " cat", "cat ", "dog"]
    pictures = {f"{number}.png": encode_png(picture) for number, picture in enumerate(random_images(4))}
    rows = [*zip(pictures, labels, strict=True)]
    data = write_files(tmp_path / location, pictures | {"metadata.csv": clip_table("label", rows)})
    assert [row["label"] for row in read(IMAGE_LABEL, data)] == ["cat", "cat", "cat", "dog"]
    np.savez(tmp_path / "a.npz", images=random_images(4), labels=np.array(labels))
    assert [row["label"] for row in read(IMAGE_LABEL, str(tmp_path / "a.npz"))] == [
        "cat",
        "cat",
        "cat",
        "dog",
    ]


def test_spaces_around_a_frame_s_label_are_none_of_it(tmp_path: Path) -> None:
    files = clip_folder("c", random_clip(0, 3))
    files["metadata.jsonl"] = json.dumps({"file_name": "c", "labels": ["cat", " cat", "cat "]}).encode()
    assert read(CLIP_LABELS, write_files(tmp_path / "a", files))[0]["labels"] == ["cat"] * 3


@pytest.mark.parametrize("location", CONTAINERS)
def test_the_column_of_files_may_be_read_too(tmp_path: Path, location: str) -> None:
    names = ["0.png", "1.png", "2.png"]
    data = write_question_rows(tmp_path / location, question_rows(3, each=1), 3)
    assert [row["label"] for row in read(IMAGE_LABEL, data, label="file_name")] == names
    assert [row["target"] for row in read(IMAGE_TEXT, data, text="file_name")] == names
    found = read(ANSWERS, data, answer="file_name")
    assert [row["answer"] for row in found] == names
    assert [Path(row["name"]).name for row in found] == names
    assert found[1]["question"] == "what colour?"


def test_a_column_may_be_called_file(tmp_path: Path) -> None:
    pictures = {f"{number}.png": encode_png(picture) for number, picture in enumerate(random_images(2))}
    rows = [*zip(pictures, ["cat", "dog"], strict=True)]
    data = write_files(tmp_path / "a", pictures | {"metadata.csv": clip_table("file", rows)})
    assert [row["label"] for row in read(IMAGE_LABEL, data, label="file")] == ["cat", "dog"]


def test_so_it_may_of_clips_and_recordings(tmp_path: Path) -> None:
    files = clip_folder("c", random_clip(0, 3)) | {"metadata.csv": clip_table("text", [("c", "it moves")])}
    data = write_files(tmp_path / "a", files)
    assert [row["label"] for row in read(CLIP_LABEL, data, label="file_name")] == ["c"]
    (tmp_path / "a/sound.wav").write_text("sound")
    (tmp_path / "a/metadata.csv").write_text("file_name\nsound.wav\n")
    (row,) = read_folder(open_part(str(tmp_path / "a")), ["file_name"])
    assert isinstance(row, Row)
    assert row.fields == {FILE_FIELD: tmp_path / "a/sound.wav", "file_name": "sound.wav"}
