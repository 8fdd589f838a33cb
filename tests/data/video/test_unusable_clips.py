"""Clips that can't be used, or not all of them: what is told, and what is used all the same."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foveal.config import Config, ConfigError
from foveal.core.errors import UserError
from foveal.data.files.data_part import open_part
from foveal.data.open import open_path
from foveal.tasks.config import load_config
from foveal.tasks.infer import infer_task
from tests.support.clip_folders import (
    CLIP_CONFIG,
    clip_folder,
    clip_table,
    clips_by_class,
    encode_animation,
    prepare_clips,
    random_clip,
    write_clip_arrays,
)
from tests.support.image_folders import CONTAINERS, SIDE, encode_png, write_files
from tests.support.pair_formats import CLIP_LABEL, CLIP_LABELS, CLIP_TEXT
from tests.support.skipped_rows import skipped_rows


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"lengths": np.full(8, 6)}, "don't fit clips"),
        ({"lengths": np.full(7, 2)}, "don't fit clips"),
        ({"label": np.zeros(7)}, r"label is \(7,\), and clips \(8, 5, 8, 8\); give one for each clip"),
        ({"clips": np.zeros((8, 5))}, r"clips are \(8, 5\); needed"),
        ({"label": np.array([None] * 8)}, "not readable as .npz: Object arrays"),
    ],
)
def test_arrays_that_do_not_fit(tmp_path: Path, more: dict[str, Any], why: str) -> None:
    clips = np.zeros((8, 5, SIDE, SIDE), np.uint8)
    given: dict[str, Any] = {"clips": clips, "label": np.zeros(8)} | more
    np.savez(tmp_path / "a.npz", **given)
    with pytest.raises(UserError, match=why):
        prepare_clips(CLIP_LABEL, str(tmp_path / "a.npz"))


def test_an_array_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no array 'digit' among 'clips', 'label', 'labels', 'leng"):
        prepare_clips(CLIP_LABEL, write_clip_arrays(tmp_path / "a.npz"), label="digit")


@pytest.mark.parametrize("location", CONTAINERS)
def test_a_frame_that_can_not_be_read_is_named_and_the_others_used(tmp_path: Path, location: str) -> None:
    files = clip_folder("c", random_clip(0, 5)) | clip_folder("d", random_clip(1, 5))
    files["c/frame3.png"] = files["c/frame3.png"][:-60]
    rows = [{"file_name": name, "labels": list("vwxyz")} for name in "cd"]
    files["metadata.jsonl"] = "\n".join(map(json.dumps, rows)).encode()
    data = write_files(tmp_path / location, files)
    skipped: list[Any] = []
    found = [*CLIP_LABELS.read(open_part(data), CLIP_CONFIG, skipped)]
    assert [row.fields["labels"] for row in found] == [["v", "w", "y", "z"], list("vwxyz")]
    assert (found[0].fields["frames"] == random_clip(0, 5)[[0, 1, 3, 4]]).all()
    (lost,) = skipped
    assert lost.location == f"{data}/metadata.jsonl, line 1, frame3.png"
    assert lost.reason.startswith("damaged or cut off")
    assert lost.reason.endswith("; the other frames are used")


@pytest.mark.parametrize("channels", [1, 3])
def test_a_frame_of_an_array_that_can_not_be_used_is_named(tmp_path: Path, channels: int) -> None:
    """Its neighbours are as dark as they were, in this clip and in others."""
    levels = np.random.default_rng(0).integers(0, 256, (3, 5, SIDE, SIDE, channels), np.uint8)
    levels[:2] //= 255
    clips = levels.astype(np.float32)
    clips[0, 2], clips[2, 4] = np.nan, -1
    labels = np.array([list("vwxyz")] * 3)
    np.savez(tmp_path / "a.npz", clips=clips, labels=labels, lengths=[5, 5, 4])
    skipped: list[Any] = []
    image = CLIP_CONFIG.image.model_copy(update={"channels": channels})
    found = [
        *CLIP_LABELS.read(
            open_part(str(tmp_path / "a.npz")), CLIP_CONFIG.model_copy(update={"image": image}), skipped
        )
    ]
    assert [row.fields["labels"] for row in found] == [list("vwyz"), list("vwxyz"), list("vwxy")]
    for row, frames in zip(found, (levels[0, [0, 1, 3, 4]], levels[1], levels[2, :4]), strict=True):
        assert (row.fields["frames"] == frames).all()
    (lost,) = skipped
    assert lost.location == f"{tmp_path}/a.npz, clip 1, frame 3"
    assert (
        lost.reason == "its values go from nan to nan; save it with 8 or 16 bits; the other frames are used"
    )


def test_an_animation_that_breaks_off_is_used_up_to_there(tmp_path: Path) -> None:
    content = encode_animation(random_clip(0, 6), "PNG")
    files = {
        "a/cut.png": content[: len(content) * 2 // 3],
        "a/b.png": content,
        "b/c.png": encode_animation(random_clip(1), "PNG"),
    }
    data = write_files(tmp_path / "a", files)
    skipped: list[Any] = []
    found = [*CLIP_LABEL.read(open_part(data), CLIP_CONFIG, skipped)]
    assert [len(row.fields["frames"]) for row in found][0::2] == [6, 3]
    assert 2 <= len(found[1].fields["frames"]) < 6
    assert (found[1].fields["frames"] == random_clip(0, 6)[: len(found[1].fields["frames"])]).all()
    assert "; the other frames are used" in skipped[0].reason


def test_frames_of_different_sizes_are_brought_to_one(tmp_path: Path) -> None:
    tall, wide = np.full((20, 10, 3), 50, np.uint8), np.full((SIDE, 30, 3), 70, np.uint8)
    files = {
        "a/c/1.png": encode_png(tall),
        "a/c/2.png": encode_png(wide),
        "a/c/3.jpeg": encode_png(random_clip(0)[0]),
    }
    data = write_files(tmp_path / "a", files)
    (row,) = CLIP_LABEL.read(open_part(data), CLIP_CONFIG, [])
    frames = row.fields["frames"]
    assert frames.shape == (3, SIDE, SIDE, 3)
    assert [frames[0].max(), frames[1].max()] == [50, 70]
    assert (frames[2] == random_clip(0)[0]).all()


@pytest.mark.parametrize("location", CONTAINERS)
def test_what_can_not_be_used_is_skipped(tmp_path: Path, location: str) -> None:
    files = (
        clips_by_class(2)
        | clip_folder("a/long", random_clip(0, 13))
        | clip_folder("a/one", random_clip(0, 1))
    )
    files |= {"a/film.mp4": b"", "a/many.gif": encode_animation(random_clip(0, 13), "GIF")} | clip_folder(
        "b", random_clip(0, 3)
    )
    files |= {"still.png": encode_png(random_clip(0)[0])}
    found = dict(skipped_rows(CLIP_LABEL, write_files(tmp_path / location, files)))
    alone = "not in a folder of a label, or its frames not in a folder of their own; move them"
    assert found == {
        "a/film.mp4": "empty; get the file again",
        "a/long": "13 frames, and data.max_length=12: train with more, or cut the clip",
        "a/one": "1 frame, and a clip needs 2; give all of its frames",
        "a/many.gif": "13 frames, and data.max_length=12: train with more, or cut the clip",
        "b": alone,
        "images beside the folders": alone,
    }


@pytest.mark.parametrize("location", CONTAINERS)
def test_folders_without_frames_are_clips_of_none(tmp_path: Path, location: str) -> None:
    files = clips_by_class(4) | {
        "a/notes/read.txt": b"text",
        "b/deep/er/list.txt": b"text",
        "c/list.txt": b"text",
    }
    files |= clip_folder("a/more/clip9", random_clip(0, 3)) | {"a/more/none/list.txt": b"text"}
    data = write_files(tmp_path / location, files)
    if location == CONTAINERS[0]:
        (tmp_path / location / "b/nothing").mkdir()
    why = "0 frames, and a clip needs 2; give all of its frames"
    empty = ["a/more/none", "a/notes", "b/deep", *["b/nothing"][location != CONTAINERS[0] :], "c"]
    assert skipped_rows(CLIP_LABEL, data) == [(name, why) for name in empty]
    assert infer_task(open_path(data), {}).name == "video-classification"
    skipped: list[Any] = []
    assert len([*CLIP_LABEL.read_unlabeled(open_part(data), CLIP_CONFIG, skipped)]) == 5
    assert [(row.location, row.reason) for row in skipped] == [(f"{data}/{name}", why) for name in empty]


@pytest.mark.parametrize("data_format", [CLIP_LABEL, CLIP_LABELS, CLIP_TEXT])
def test_a_clip_of_no_length_is_skipped(tmp_path: Path, data_format: Any) -> None:
    data = write_clip_arrays(tmp_path / "a.npz", lengths=np.array([5, 0, 2, 2, 3, 4, 5, 5]))
    assert skipped_rows(data_format, data) == [
        ("clip 2", "0 frames, and a clip needs 2; give all of its frames")
    ]


@pytest.mark.parametrize("location", CONTAINERS)
def test_rows_of_a_table_that_can_not_be_used(tmp_path: Path, location: str) -> None:
    files = clip_folder("c", random_clip(0)) | {
        "empty/notes.txt": b"",
        "film.mov": b"",
        "still.gif": encode_animation(random_clip(0, 1), "GIF"),
    }
    names = ["c", "none", "empty", "film.mov", "still.gif", "c", "../c"]
    rows = [
        {"file_name": name, "text": "" if number == 5 else "it moves"} for number, name in enumerate(names)
    ]
    files["metadata.jsonl"] = "\n".join(map(json.dumps, rows)).encode()
    whys = [why.split(";")[0] for _, why in skipped_rows(CLIP_TEXT, write_files(tmp_path / location, files))]
    assert whys[:5] == [
        "no such file or folder: none",
        "no frames in empty (.jpg, .jpeg, .jfif, .png, .gif, .bmp, .webp, .tif, .tiff, "
        ".ppm, .pgm, .pbm, .pnm)",
        "empty",
        "1 frame that can be used, and a clip needs 2",
        "'text' is empty",
    ]
    assert len(whys) == 6
    assert "../c" in whys[5]


def test_labels_are_one_for_each_frame(tmp_path: Path) -> None:
    files = clip_folder("c", random_clip(0, 3))
    files["metadata.csv"] = clip_table("labels", [("c", "x y"), ("c", "x y x")])
    ((place, why),) = skipped_rows(CLIP_LABELS, write_files(tmp_path / "a", files))
    assert (place, why) == ("metadata.csv, line 2", "2 labels for 3 frames; give each frame one label")
    files.pop("metadata.csv")
    files["metadata.jsonl"] = json.dumps({"file_name": "c", "labels": []}).encode()
    assert [why for _, why in skipped_rows(CLIP_LABELS, write_files(tmp_path / "b", files))] == [
        "0 labels for 3 frames; give each frame one label"
    ]


def test_changes_of_images_are_refused() -> None:
    for setting in ("data.augment.flip=true", "data.augment.crop=pad", "data.image.tta=ten-crop"):
        with pytest.raises(ConfigError, match=r" is not read, since task\.name=video-classification"):
            load_config("video-classification", [setting])
    assert isinstance(load_config("video-classification"), Config)
