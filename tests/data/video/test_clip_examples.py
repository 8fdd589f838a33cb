"""Clips: where they are, what is read of them, what a batch holds, and what is told or skipped."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from foveal.config import ImageConfig
from foveal.core.errors import UserError
from foveal.data import prepare_examples
from foveal.data.core.length_buckets import BucketedEvalBatches
from foveal.data.files.data_part import open_part
from foveal.data.open import open_path
from foveal.data.pairs.pair import PairProcessor
from foveal.data.video.clip_batches import ClipBatches
from foveal.tasks.infer import infer_task
from tests.support.clip_folders import (
    CLIP_CONFIG,
    Files,
    clip_folder,
    clip_table,
    clips_by_class,
    encode_animation,
    frames_of,
    prepare_clips,
    random_clip,
    write_clip_arrays,
)
from tests.support.image_folders import CONTAINERS, SIDE, encode_png, random_images, write_files
from tests.support.pair_formats import CLIP_LABEL, CLIP_LABELS, CLIP_TEXT


@pytest.mark.parametrize("location", CONTAINERS)
def test_a_folder_of_frames_for_each_clip(tmp_path: Path, location: str) -> None:
    data = write_files(tmp_path / location, clips_by_class(12))
    assert infer_task(open_path(data), {}).name == "video-classification"
    train = prepare_clips(CLIP_LABEL, data).train
    order = [*range(0, 12, 2), *range(1, 12, 2)]
    assert train.references == ["a"] * 6 + ["b"] * 6
    assert [Path(source).name for source in train.sources] == [f"clip{number:02}" for number in order]
    for row, number in enumerate(order):  # frame10 stands behind frame9
        assert (frames_of(train, row) == random_clip(number)).all()
    assert train.lengths == [len(random_clip(number)) for number in order]
    assert train.facts["frames"] == sum(train.lengths)


@pytest.mark.parametrize("location", CONTAINERS)
@pytest.mark.parametrize("form", ["GIF", "PNG", "WEBP"])
def test_animations(tmp_path: Path, location: str, form: str) -> None:
    """A GIF has 256 colours for a frame, which are enough for its 64 pixels."""
    files = {f"{'ab'[n % 2]}/{n}.{form.lower()}": encode_animation(random_clip(n), form) for n in range(6)}
    data = write_files(tmp_path / location, files)
    assert infer_task(open_path(data), {}).name == "video-classification"
    train = prepare_clips(CLIP_LABEL, data).train
    for row, number in enumerate([0, 2, 4, 1, 3, 5]):
        if form == "GIF":
            assert frames_of(train, row).shape == random_clip(number).shape
            assert abs(frames_of(train, row).astype(int) - random_clip(number)).mean() < 8
        else:
            assert (frames_of(train, row) == random_clip(number)).all()


@pytest.mark.parametrize("location", CONTAINERS)
def test_a_table_names_folders_and_files(tmp_path: Path, location: str) -> None:
    files = clip_folder("some/one", random_clip(3)) | {
        "two.gif": encode_animation(random_clip(4), "GIF"),
        "notes.txt": b"no clip",
    }
    files["metadata.csv"] = clip_table("text", [("some/one", "it moves"), ("two.gif", "it stands still")])
    data = write_files(tmp_path / location, files)
    assert infer_task(open_path(data), {}).name == "video-captioning"
    assert infer_task(open_path(data), {"label": "text"}).name == "video-classification"
    train = prepare_clips(CLIP_TEXT, data).train
    assert train.references == ["it moves", "it stands still"]
    assert train.sources == [f"{data}/some/one", f"{data}/two.gif"]
    assert train.lengths == [5, 6]


@pytest.mark.parametrize("listed", [True, False])
def test_a_label_for_each_frame(tmp_path: Path, listed: bool) -> None:
    files: Files = {}
    rows = []
    for number in range(6):
        files |= clip_folder(f"c{number}", random_clip(number))
        labels = ["xy"[frame % 2] for frame in range(len(random_clip(number)))]
        rows.append({"file_name": f"c{number}", "labels": labels if listed else " ".join(labels)})
    files["metadata.jsonl"] = "\n".join(map(json.dumps, rows)).encode()
    data = write_files(tmp_path / "a", files)
    assert infer_task(open_path(data), {}).name == "frame-tagging"
    found = prepare_clips(CLIP_LABELS, data)
    assert found.processor.target.labels == ("x", "y")
    assert found.train.references[1] == ["x", "y", "x"]
    columns = found.train.examples.columns
    assert columns["places"][1].tolist() == [0, 1, 2]
    assert columns["target"][1].tolist() == [0, 1, 0]


@pytest.mark.parametrize("channels", [(), (1,), (3,)])
def test_arrays(tmp_path: Path, channels: tuple[int, ...]) -> None:
    data = write_clip_arrays(tmp_path / "a.npz", channels)
    assert infer_task(open_path(data), {}).name == "frame-tagging"
    assert (
        infer_task(open_path(data), {"text": "text"}).name == "video-classification"
    )  # there is a label too
    image = ImageConfig(size=SIDE, channels=3 if channels == (3,) else 1)
    clips = np.load(data)["clips"].reshape(8, 5, SIDE, SIDE, -1)
    for data_format, first in (
        (CLIP_LABEL, "b"),
        (CLIP_LABELS, ["y", "x"]),
        (CLIP_TEXT, "clip 0"),
    ):
        train = prepare_clips(data_format, data, image=image).train
        assert train.references[0] == first
        assert train.lengths == [2, 3, 4, 5, 2, 3, 4, 5]
        assert all(
            (frames_of(train, row) == clips[row, :length]).all() for row, length in enumerate(train.lengths)
        )
    assert train.sources[7] == f"{data}, clip 8"


def test_pictures_by_class_are_no_clips(tmp_path: Path) -> None:
    flat = {f"{'ab'[n % 2]}/{n}.png": encode_png(picture) for n, picture in enumerate(random_images(6))}
    assert infer_task(open_path(write_files(tmp_path / "flat", flat)), {}).name == "image-classification"
    deep = {
        f"{'ab'[n % 2]}/house/{'xyzuvw'[n]}{n}.png": encode_png(picture)
        for n, picture in enumerate(random_images(6))
    }
    assert infer_task(open_path(write_files(tmp_path / "deep", deep)), {}).name == "image-classification"
    still = {f"{'ab'[n % 2]}/{n}.gif": encode_animation(random_clip(n, 1), "GIF") for n in range(4)}
    assert infer_task(open_path(write_files(tmp_path / "still", still)), {}).name == "image-classification"
    videos = {f"{'ab'[n % 2]}/{n}.mp4": b"film" for n in range(4)}
    assert infer_task(open_path(write_files(tmp_path / "videos", videos)), {}).name == "video-classification"
    assert (
        infer_task(open_path(write_files(tmp_path / "text", {"a.txt": b"text"})), {}).name == "language-model"
    )
    captioned = flat | {"metadata.csv": clip_table("text", [(name, "a house") for name in flat])}
    assert infer_task(open_path(write_files(tmp_path / "captioned", captioned)), {}).name == "captioning"


def test_a_batch_holds_standardised_frames_and_zeros_behind_them(tmp_path: Path) -> None:
    found = prepare_clips(CLIP_LABELS, write_clip_arrays(tmp_path / "a.npz", (3,)))
    clips, statistics = found.train.examples, found.processor.source.statistics
    order = ClipBatches(BucketedEvalBatches(clips, 30), clips)
    seen = []
    for index in range(order.per_epoch):
        batch = order.batch(0, index)
        source, lengths = batch.columns["source"], batch.lengths["source"]
        assert source.shape == (len(lengths), int(lengths.max()), 3, SIDE, SIDE)
        assert batch.tokens == int(lengths.sum())
        for row, frames, length in zip(batch.rows.tolist(), source, lengths.tolist(), strict=True):
            levels = (frames_of(found.train, row) - np.array(statistics.mean)) / np.array(statistics.std)
            expected = torch.tensor(levels.transpose(0, 3, 1, 2), dtype=torch.float32)
            torch.testing.assert_close(frames[:length], expected, rtol=1e-5, atol=1e-5)
            assert frames[length:].eq(0).all()
            seen.append(row)
    assert sorted(seen) == [*range(8)]


@pytest.mark.parametrize("data_format", [CLIP_LABEL, CLIP_LABELS, CLIP_TEXT])
def test_what_is_kept_reads_clips_alike(tmp_path: Path, data_format: Any) -> None:
    data = write_clip_arrays(tmp_path / "a.npz", (3,))
    found = prepare_clips(data_format, data)
    for name, content in data_format.files(found.processor).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    opened = data_format.load_processor(tmp_path)
    assert data_format.files(opened) == data_format.files(found.processor)
    again, facts = prepare_examples.prepare_eval_examples(data_format, data, CLIP_CONFIG, opened, print)
    assert facts["sha256"] == found.facts["parts"]["train"]["sha256"]
    _, asked, _ = prepare_examples.read_unlabeled(data_format, data, opened, CLIP_CONFIG, print)
    assert (asked.frames == again.examples.frames).all()
    assert asked.columns.keys() == again.examples.columns.keys() - {"label", "target"}
    subset = again.examples.subset([6, 1])
    assert [len(subset), subset.lengths("source")] == [2, [4, 3]]
    assert (subset.frames[subset.columns["source"][1]] == frames_of(again, 1)).all()


@pytest.mark.parametrize("location", CONTAINERS)
@pytest.mark.parametrize("inside", ["", "all/"])
def test_a_clip_has_one_name_whether_its_label_is_read_or_not(
    tmp_path: Path, location: str, inside: str
) -> None:
    files = {f"{inside}{name}": content for name, content in clips_by_class(4).items()}
    data = write_files(tmp_path / location, files)
    data = data if location.endswith(".zip") else f"{data}/{inside}"
    named = [row.fields["name"] for row in CLIP_LABEL.read(open_part(data), CLIP_CONFIG, [])]
    asked = [row.fields["source"] for row in CLIP_LABEL.read_unlabeled(open_part(data), CLIP_CONFIG, [])]
    assert len(named) == 4
    assert named == asked


def test_one_clip_or_all_of_a_folder_may_be_asked_about(tmp_path: Path) -> None:
    files = clips_by_class(4) | {"c/d.gif": encode_animation(random_clip(9), "GIF"), "c/e.avi": b""}
    data = write_files(tmp_path / "a", files)
    skipped: list[Any] = []
    rows = [*CLIP_LABEL.read_unlabeled(open_part(data), CLIP_CONFIG, skipped)]
    assert [row.fields["source"].removeprefix(f"{data}/") for row in rows] == [
        "a/clip00",
        "a/clip02",
        "b/clip01",
        "b/clip03",
        "c/d.gif",
    ]
    assert [row.location for row in skipped] == [f"{data}/c/e.avi"]
    for one in (f"{data}/b/clip03", f"{data}/c/d.gif"):
        (row,) = CLIP_LABEL.read_unlabeled(open_part(one), CLIP_CONFIG, [])
        assert row.fields["source"] == one
    (tmp_path / "none").mkdir()
    with pytest.raises(UserError, match="no clips in it"):
        prepare_examples.read_unlabeled(
            CLIP_LABEL, str(tmp_path / "none"), PairProcessor(None, None), CLIP_CONFIG, print
        )
