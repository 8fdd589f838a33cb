"""Videos: their frames bit for bit where they are kept so, and what is told of those that are damaged."""

import json
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from foveal.core.errors import UserError
from foveal.data.files.data_part import open_part
from foveal.data.open import open_path
from foveal.data.video.video_decoding import decode_video
from foveal.tasks.infer import infer_task
from tests.support.clip_folders import (
    CLIP_CONFIG,
    clip_folder,
    clip_table,
    frames_of,
    prepare_clips,
    random_clip,
)
from tests.support.image_folders import CONTAINERS, SIDE, write_files
from tests.support.pair_formats import CLIP_LABEL, CLIP_LABELS
from tests.support.skipped_rows import skipped_rows
from tests.support.video_bytes import (
    LOSSLESS,
    damage_frame,
    encode_frames,
    encode_video,
    frame_slices,
    join_videos,
    rotate_video,
    video_without_frames,
)

pytest.importorskip("av")
FAST = {"preset": "ultrafast"}
AGAIN = "; get the file again"


def seen(content: bytes, max_frames: int = 12, size: int = SIDE) -> Any:
    """The frames, or why there are none."""
    Path("film.mp4").write_bytes(content)
    found = decode_video(Path("film.mp4"), size, 3, max_frames)
    return found if isinstance(found, str) else [one if isinstance(one, str) else one.pixels for one in found]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("location", CONTAINERS)
@pytest.mark.parametrize("suffix", LOSSLESS)
def test_videos_by_class(tmp_path: Path, location: str, suffix: str) -> None:
    files = {f"{'ab'[n % 2]}/{n}.{suffix.upper()}": encode_video(random_clip(n), suffix) for n in range(4)}
    data = write_files(tmp_path / location, files)
    assert infer_task(open_path(data), {}).name == "video-classification"
    train = prepare_clips(CLIP_LABEL, data).train
    assert train.references == ["a", "a", "b", "b"]
    for row, number in enumerate([0, 2, 1, 3]):
        assert (frames_of(train, row) == random_clip(number)).all()


@pytest.mark.parametrize("location", CONTAINERS)
def test_a_table_names_videos(tmp_path: Path, location: str) -> None:
    files = clip_folder("one", random_clip(1)) | {"two.mp4": encode_video(random_clip(2))}
    files["metadata.csv"] = clip_table("labels", [("one", "x y z"), ("two.mp4", "x y z z")])
    data = write_files(tmp_path / location, files)
    assert infer_task(open_path(data), {}).name == "frame-tagging"
    train = prepare_clips(CLIP_LABELS, data).train
    assert train.references == [["x", "y", "z"], ["x", "y", "z", "z"]]
    assert (frames_of(train, 1) == random_clip(2)).all()
    asked = [*CLIP_LABELS.read_unlabeled(open_part(data), CLIP_CONFIG, [])]
    assert [row.fields["source"] for row in asked] == [f"{data}/two.mp4", f"{data}/one"]


def test_a_single_video_may_be_asked_about() -> None:
    Path("film.mp4").write_bytes(encode_video(random_clip(3)))
    (row,) = CLIP_LABEL.read_unlabeled(open_part("film.mp4"), CLIP_CONFIG, [])
    assert row.fields["source"] == "film.mp4"
    assert (row.fields["frames"] == random_clip(3)).all()


@pytest.mark.parametrize(
    ("suffix", "codec"),
    [("avi", "mpeg4"), ("mov", "libx264"), ("webm", "libvpx-vp9"), ("mpegts", "libx264"), ("asf", "wmv2")],
)
def test_frames_come_in_the_order_in_which_they_are_shown(suffix: str, codec: str) -> None:
    """Some are stored behind those that come after them."""
    levels = [*range(0, 200, 20)]
    ramp = [np.full((16, 16, 3), level, np.uint8) for level in levels]
    found = seen(
        encode_frames(ramp, suffix, codec, "yuv420p", {} if codec == "wmv2" else {"bf": "2"}), size=16
    )
    assert [frame.mean() for frame in found] == pytest.approx(levels, abs=4)


def test_a_film_is_turned_upright_and_cut_to_its_centre() -> None:
    frames = random_clip(0, 3)
    for found, frame in zip(seen(rotate_video(encode_video(frames))), frames, strict=True):
        assert (found == np.rot90(frame, -1)).all()
    wide = np.zeros((2, 16, 48, 3), np.uint8)
    wide[:, :, 16:32] = 200
    Path("a").mkdir()
    Path("a/wide.mp4").write_bytes(encode_video(wide))
    (row,) = CLIP_LABEL.read(open_part("."), CLIP_CONFIG, [])
    assert row.fields["frames"].shape == (2, SIDE, SIDE, 3)
    assert (row.fields["frames"][:, :, 1:-1] == 200).all()


def large(count: int) -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (count, 64, 64, 3), np.uint8)


@pytest.mark.parametrize(
    ("suffix", "codec", "pixels", "options", "skipped_frames"),
    [
        ("mkv", "ffv1", "bgr0", {"g": "1"}, [3]),
        ("avi", "mjpeg", "yuvj420p", {}, [3]),
        ("mp4", "libx264rgb", "rgb24", {"qp": "0", "g": "5", "keyint_min": "5", "sc_threshold": "0"}, [3, 4]),
        ("avi", "mpeg4", "yuv420p", {"g": "5", "sc_threshold": "1000000000"}, [3, 4]),
    ],
)
def test_a_damaged_frame_is_named_with_those_made_of_it(
    suffix: str, codec: str, pixels: str, options: dict[str, str], skipped_frames: list[int]
) -> None:
    content = encode_frames(large(8), suffix, codec, pixels, options)
    whole, found = seen(content, size=64), seen(damage_frame(content, 3), size=64)
    assert [number for number, one in enumerate(found) if isinstance(one, str)] == skipped_frames
    assert found[3] == f"damaged{AGAIN}"
    assert all(found[number] == "depends on a damaged frame before it" for number in skipped_frames[1:])
    assert all((found[number] == whole[number]).all() for number in range(8) if number not in skipped_frames)


def test_labels_stay_with_their_frames() -> None:
    Path("clips").mkdir()
    Path("clips/a.mkv").write_bytes(damage_frame(encode_video(large(5), "mkv"), 1))
    Path("clips/metadata.jsonl").write_text(json.dumps({"file_name": "a.mkv", "labels": [*"vwxyz"]}))
    skipped: list[Any] = []
    (row,) = CLIP_LABELS.read(open_part("clips"), CLIP_CONFIG, skipped)
    assert row.fields["labels"] == [*"vxyz"]
    (told,) = skipped
    assert (told.location, told.reason) == (
        "clips/metadata.jsonl, line 1, frame 2",
        f"damaged{AGAIN}; the other frames are used",
    )


def test_a_film_that_is_cut_off_is_used_up_to_there() -> None:
    content = encode_frames(large(8), "avi", "mjpeg", "yuvj420p", {})
    found = seen(content[: frame_slices(content)[5].start])
    assert [isinstance(one, str) for one in found] == [False] * 5 + [True] * 3
    assert found[5] == f"missing: the video is cut off{AGAIN}"


def test_a_frame_that_is_far_larger_than_the_first_is_not_read() -> None:
    wide = encode_frames(np.zeros((1, 3500, 3500, 3), np.uint8), "avi", "mjpeg", "yuvj420p", {})
    small = encode_frames(large(2), "avi", "mjpeg", "yuvj420p", {})
    found = seen(join_videos([small, wide, small], "avi"))
    assert [isinstance(one, str) for one in found] == [False, False, True, False, False]


def huge(content: bytes) -> bytes:
    """A film of JPEGs that say that they are of other sizes."""
    out = bytearray(content)
    for place in frame_slices(content):
        at = content.index(b"\xff\xc0", place.start) + 5
        out[at : at + 4] = struct.pack(">HH", 30_000, 30_000)
    return bytes(out)


def swollen(content: bytes) -> bytes:
    """An MP4 that says that it has ten million frames of a byte: they took 700 MiB."""
    at = content.index(b"stsz") + 8
    return content[:at] + struct.pack(">2I", 1, 10**7) + content[at + 8 :]


def test_what_can_not_be_used_is_skipped() -> None:
    jpegs = encode_frames(large(3), "avi", "mjpeg", "yuvj420p", {})
    Path("data/a").mkdir(parents=True)
    files = {
        "cut.mp4": encode_video(random_clip(0, 6))[:-400],
        "empty.mp4": b"",
        "huge.avi": huge(jpegs),
        "long.mkv": encode_video(random_clip(0, 13), "mkv"),
        "long.mp4": encode_video(random_clip(0, 13)),
        "none.mp4": b"no film at all",
        "odd.mp4": encode_video(random_clip(0, 3)).replace(b"avc1", b"odd1"),
        "one.mov": encode_video(random_clip(0, 1)),
        "sound.mov": video_without_frames("mov"),
        "swollen.mp4": swollen(encode_video(random_clip(0, 3))),
        "wide.mp4": encode_frames(np.zeros((1, 3500, 3500, 3), np.uint8), "mp4", "libx264", "yuv420p", FAST),
        "list.mp4": b"ffconcat version 1.0\nfile good.mp4\n",
        "good.mp4": encode_video(random_clip(0, 3)),
    }
    for name, content in files.items():
        Path("data/a", name).write_bytes(content)
    found = {place.removeprefix("a/"): why for place, why in skipped_rows(CLIP_LABEL, "data")}
    unreadable = "damaged, cut off or not a video ({})" + AGAIN
    few = "frame{} that can be used, and a clip needs 2"
    assert found == {
        "cut.mp4": unreadable.format("Invalid data found when processing input"),
        "empty.mp4": f"empty{AGAIN}",
        "huge.avi": f"0 {few.format('s')}; frame 1: damaged{AGAIN}",
        "long.mkv": "more than 12 frames, and data.max_length=12: train with more, or cut the clip",
        "long.mp4": "13 frames, and data.max_length=12: train with more, or cut the clip",
        "none.mp4": unreadable.format("Invalid data found when processing input"),
        "odd.mp4": "images in a format that FFmpeg does not know; convert the video",
        "one.mov": f"1 {few.format('')}",
        "sound.mov": f"no images in it: it has only sound, or is cut off{AGAIN}",
        "swollen.mp4": f"damaged or cut off: it claims to have more frames than it can have{AGAIN}",
        "wide.mp4": "3,500 x 3,500 pixels are too many; make the video smaller",
        "list.mp4": unreadable.format("Invalid argument"),
    }


def test_without_its_reader_a_video_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    content = encode_video(random_clip(0, 3))
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(UserError, match=r"film\.mp4: a video needs the package av: pip install"):
        seen(content)
