"""Tars of pictures in the format of WebDataset, whole and damaged."""

import io
import tarfile
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveal.core.errors import UserError
from foveal.data.core.rows import SkippedRow
from foveal.data.files.unpack import unpack_tars
from foveal.data.open import OpenedData, open_path
from foveal.data.pairs.pair import PairFormat
from foveal.store.cache import cache_folder, shorten_unpacked_paths
from foveal.tasks.infer import infer_task
from tests.support.class_folders import CONFIG
from tests.support.image_folders import encode_png, random_images, write_files
from tests.support.pair_formats import IMAGE_LABEL, IMAGE_TEXT
from tests.support.tars import tar_of

PNG = encode_png(random_images(1)[0])


def labeled(keys: range) -> dict[str, bytes]:
    pictures = random_images(keys.stop)
    return {
        f"{key:04}.{suffix}": content
        for key in keys
        for suffix, content in (("png", encode_png(pictures[key])), ("cls", b"%d\n" % (key % 2)))
    }


def targets(
    opened: OpenedData, data_format: PairFormat = IMAGE_LABEL
) -> tuple[dict[str, list[str]], list[str]]:
    """Return the targets of each split, and the skipped rows as they are shown."""
    skipped: list[SkippedRow] = []
    splits = {
        split: [row.fields[data_format.target.field] for row in data_format.read(part, CONFIG, skipped)]
        for split, part in opened.splits.items()
    }
    return splits, [shorten_unpacked_paths(f"{row.location}: {row.reason}") for row in skipped]


def write(folder: Path, shards: Mapping[str, bytes]) -> OpenedData:
    return open_path(write_files(folder, dict(shards)))


def test_shards_are_read_in_order_of_their_names(tmp_path: Path) -> None:
    shards = {f"shard-{n:06}.tar": tar_of(labeled(range(3 * n, 3 * n + 3))) for n in (1, 0)}
    opened = write(tmp_path / "shards", shards)
    assert infer_task(opened, {}).name == "image-classification"
    assert targets(opened) == ({"train": ["0", "1", "0", "1", "0", "1"]}, [])


def test_a_single_shard(tmp_path: Path) -> None:
    write(tmp_path / "shards", {"a.tar": tar_of(labeled(range(2)))})
    assert targets(open_path(str(tmp_path / "shards/a.tar"))) == ({"train": ["0", "1"]}, [])


@pytest.mark.parametrize(
    ("train", "test"), [("train/0.tar", "test/0.tar"), ("x-train-0.tar", "x-test-0.tar")]
)
def test_names_of_shards_are_those_of_splits(tmp_path: Path, train: str, test: str) -> None:
    opened = write(
        tmp_path / "shards", {test: tar_of(labeled(range(1))), train: tar_of(labeled(range(1, 4)))}
    )
    assert targets(opened) == ({"train": ["1", "0", "1"], "test": ["0"]}, [])


def test_columns_of_json(tmp_path: Path) -> None:
    members = {"a/1.png": PNG, "a/1.json": b'{"caption": "a cat", "width": 9}'}
    opened = write(tmp_path / "shards", {"0.tar": tar_of(members)})
    assert infer_task(opened, {}).name == "captioning"
    assert {*opened.columns} == {"file_name", "text", "width"}
    assert targets(opened, IMAGE_TEXT) == ({"train": ["a cat"]}, [])


def test_a_tar_of_other_files_is_no_shard(tmp_path: Path) -> None:
    opened = write(tmp_path / "shards", {"0.tar": tar_of({"cat/1.png": PNG, "notes.md": b"notes"})})
    assert opened.layout is None


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"0003.cls": None}, "0003.png: no 0003.cls with it; add it, or leave the file out"),
        ({"0003.png": None}, "0003.cls: no picture or recording with the key 0003; add it, or remove what"),
        ({"0003.jpg": PNG}, "0003.jpg: .jpg and .png have the same key; keep one of them"),
        ({"0003.cls": b"\xff"}, "0003.png: 0003.cls: not UTF-8"),
        ({"0003.cls": b" "}, "0003.png: 0003.cls: empty; write a text, or leave the file out"),
        ({"0003.png": b"no picture"}, "0003.png: not an image that can be read"),
    ],
)
def test_a_damaged_sample_is_skipped(tmp_path: Path, changed: dict[str, bytes | None], reason: str) -> None:
    members = labeled(range(5)) | changed
    kept = {name: content for name, content in members.items() if content is not None}
    splits, skipped = targets(write(tmp_path / "shards", {"0.tar": tar_of(kept)}))
    assert [len(splits["train"]), len(skipped)] == [4, 1]
    assert skipped[0].startswith(f"{tmp_path}/shards/0.tar, {reason}")


@pytest.mark.parametrize("content", [b"[1]", b"{", b'{"label": null}', b"\xff", b'"\\ud800"'])
def test_damaged_json_is_skipped(tmp_path: Path, content: bytes) -> None:
    members = {"1.png": PNG, "1.json": b'{"label": "a"}', "2.png": PNG, "2.json": content}
    splits, skipped = targets(write(tmp_path / "shards", {"0.tar": tar_of(members)}))
    assert splits == {"train": ["a"]}
    assert len(skipped) == 1
    assert f"{tmp_path}/shards/0.tar, 2.png: " in skipped[0]
    assert "\n" not in skipped[0]


def test_a_key_in_two_shards(tmp_path: Path) -> None:
    shard = tar_of(labeled(range(2)))
    with pytest.raises(UserError) as error:
        targets(write(tmp_path / "shards", {"0.tar": shard, "1.tar": shard}))
    assert str(error.value) == (
        f"{tmp_path}/shards/1.tar, 0000: {tmp_path}/shards/0.tar has this key, too; "
        "remove one of the shards, or rename the files in it"
    )


@pytest.mark.parametrize(
    ("name", "kind", "reason"),
    [
        ("../2.png", tarfile.REGTYPE, "the name '../2.png' leads out of the tar; make the tar again"),
        ("/2.png", tarfile.REGTYPE, "the name '/2.png' leads out of the tar; make the tar again"),
        ("..\\2.png", tarfile.REGTYPE, "leads out of the tar"),
        ("1.png", tarfile.REGTYPE, "two files in it are named '1.png'; rename one, and make the tar again"),
        ("1.png/2.png", tarfile.REGTYPE, "two files in it are named '1.png/2.png'"),
        ("2.png", tarfile.SYMTYPE, "2.png: a link or device; make the tar of regular files"),
        ("2.png", tarfile.FIFOTYPE, "2.png: a link or device; make the tar of regular files"),
    ],
)
def test_wrong_members_are_refused(tmp_path: Path, name: str, kind: bytes, reason: str) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for each, of_kind in (("1.png", tarfile.REGTYPE), ("1.cls", tarfile.REGTYPE), (name, kind)):
            member = tarfile.TarInfo(each)
            member.type = of_kind
            tar.addfile(member)
    with pytest.raises(UserError) as error:
        targets(write(tmp_path / "shards", {"0.tar": packed.getvalue()}))
    assert str(error.value).startswith(f"{tmp_path}/shards/0.tar")
    assert reason in str(error.value)
    assert not [*tmp_path.rglob("2.png")]
    assert not [*cache_folder().rglob("2.png")]


WHOLE = tar_of(labeled(range(3)))
END = WHOLE.rstrip(b"\0")
"""The tar without the blocks of zeros at its end, of which one must be there."""


@given(size=st.integers(1, len(END)))
def test_a_tar_cut_off_anywhere_is_refused(tmp_path_factory: pytest.TempPathFactory, size: int) -> None:
    folder = tmp_path_factory.mktemp("cut")
    (folder / "0.tar").write_bytes(WHOLE[:size])
    with pytest.raises(
        UserError, match=rf"{folder}/0\.tar: cut off or damaged after .*; get the file again$"
    ):
        unpack_tars(folder, ["0.tar"])


@given(st.binary(max_size=2000))
def test_bytes_that_are_no_tar_are_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.mktemp("none")
    (folder / "0.tar").write_bytes(content)
    with (
        pytest.raises(UserError, match=rf"^{folder}/0\.tar[^\n]*$")
        if content[:512] != bytes(512)
        else nullcontext()
    ):
        unpack_tars(folder, ["0.tar"])


def test_an_unpacking_that_was_killed_goes_on_with_the_next_tar(tmp_path: Path) -> None:
    write(tmp_path / "shards", {"0.tar": WHOLE, "1.tar": WHOLE[:700]})
    with pytest.raises(UserError):
        unpack_tars(tmp_path / "shards", ["0.tar", "1.tar"])
    (first,) = cache_folder().rglob("0.tar/0000.png")
    time = first.stat().st_ctime_ns
    (tmp_path / "shards/1.tar").write_bytes(WHOLE)
    unpacked = unpack_tars(tmp_path / "shards", ["0.tar", "1.tar"])
    assert (unpacked / "0.tar/0000.png").stat().st_ctime_ns == time
    assert (unpacked / "1.tar/0002.png").is_file()
