"""Zips that people have: empty, with names twice, with zips inside, and from a Mac."""

import re
import warnings
import zipfile
from pathlib import Path

import pytest

from foveal.core.errors import UserError
from foveal.data.files.unpack import unpack_zip
from foveal.data.open import OpenedData, open_path
from foveal.store.cache import cache_folder, shorten_unpacked_paths

CSV = b"text,label\nthe cat,a\na dog,b\n"


def write_zip(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def open_zip(path: Path) -> OpenedData:
    return open_path(str(path))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOVEAL_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("members", [{}, {"a/": b""}, {"__MACOSX/._a": b"x", ".DS_Store": b"x"}])
def test_a_zip_without_files_is_refused(members: dict[str, bytes], tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a\.zip: a zip without files"):
        _ = open_zip(write_zip(tmp_path / "a.zip", members)).whole


@pytest.mark.parametrize("names", [("a.csv", "a.csv"), ("a/b.png", "a\\b.png"), ("c/1.png", "c/1.png")])
def test_two_files_of_one_name_are_refused(names: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(names[0], CSV)
        archive.fp.write(b"")  # type: ignore[union-attr]
        archive.NameToInfo.clear()  # so that Python does not warn
        archive.writestr(names[1], CSV)
    with pytest.raises(UserError, match=r"a\.zip: 2 files in it are named"):
        _ = open_zip(path).whole


def test_a_zip_alone_in_a_zip_is_unpacked_and_several_are_refused(tmp_path: Path) -> None:
    inner = write_zip(tmp_path / "inner.zip", {"data.csv": CSV}).read_bytes()
    alone = open_zip(write_zip(tmp_path / "one.zip", {"inner.zip": inner}))
    assert alone.kind == "table"
    with pytest.raises(UserError, match=r"two\.zip: only zips in it \(a\.zip, b\.zip\); give one of them"):
        _ = open_zip(write_zip(tmp_path / "two.zip", {"a.zip": inner, "b.zip": inner})).whole


def test_a_zip_of_a_mac_with_a_single_folder(tmp_path: Path) -> None:
    members = {"root/train.csv": CSV, "root/test.csv": CSV, "root/.DS_Store": b"x"}
    data = open_zip(write_zip(tmp_path / "a.zip", members | {"__MACOSX/root/._train.csv": b"x"}))
    assert {*data.splits} == {"train", "test"}
    assert not data.found_splits.unused


def test_messages_name_the_packed_file_and_not_the_cache(tmp_path: Path) -> None:
    data = open_zip(write_zip(tmp_path / "a.zip", {"data.csv": CSV}))
    assert str(cache_folder()) in str(data.whole)
    assert re.fullmatch(r"no, a\.zip/data\.csv", shorten_unpacked_paths(f"no, {data.whole}"))


def test_a_folder_that_is_named_twice_is_no_double_file(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of zipfile, about names that are there twice
        for name in ("cat/", "cat/", "dog\\", "dog/"):
            archive.writestr(name, "")
        archive.writestr("cat/1.txt", "a")
        archive.writestr("dog/1.txt", "b")
    folder = unpack_zip(path)
    assert sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*.txt")) == [
        "cat/1.txt",
        "dog/1.txt",
    ]
