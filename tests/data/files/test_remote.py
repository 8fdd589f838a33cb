"""DATA at an address: a real object store on this machine, and fsspec's own file system in memory."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import fsspec
import pytest

from foveal.core.errors import UserError
from foveal.data.files import remote
from foveal.data.files.remote import fetch, is_remote
from foveal.data.open import open_path
from foveal.store.cache import remote_folder, shorten_unpacked_paths
from tests.support.command_line import succeed

ROWS = "text,label\n" + "".join(f"row {number},{'ab'[number % 2]}\n" for number in range(40))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOVEAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def memory() -> Iterator[Any]:
    """fsspec's file system in this process, which is empty before and after."""
    system = fsspec.filesystem("memory")
    system.store.clear()
    yield system
    system.store.clear()


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A server that speaks S3, with a bucket `texts`."""
    server_module = pytest.importorskip("moto.server")
    s3fs = pytest.importorskip("s3fs")
    server = server_module.ThreadedMotoServer(port=0, verbose=False)
    server.start()
    endpoint = "http://{}:{}".format(*server.get_host_and_port())
    urlopen(Request(f"{endpoint}/moto-api/reset", method="POST")).close()  # what other tests have stored
    for name, value in {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "a-secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": endpoint,
    }.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    system = s3fs.S3FileSystem(endpoint_url=endpoint)
    system.mkdir("texts")
    yield system
    server.stop()
    s3fs.S3FileSystem.clear_instance_cache()


def whole_files(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.mark.parametrize("data", ["reviews.csv", "a.en,b.de", "C:\\data", "/data", "shakespeare", "s3:a"])
def test_paths_and_names_are_not_addresses(data: str) -> None:
    assert not is_remote(data)


def test_a_folder_of_an_object_store_is_fetched_once(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = {f"reviews/{number}.csv": ROWS.encode() + b"x,a\n" * number for number in range(12)}
    for name, content in contents.items():
        store.pipe(f"texts/{name}", content)
    folder = fetch("s3://texts/reviews/")
    assert whole_files(folder) == {name.removeprefix("reviews/"): each for name, each in contents.items()}
    monkeypatch.setattr(remote, "_copy", None)
    assert fetch("s3://texts/reviews/") == folder, "nothing is fetched again"


def test_an_object_that_changes_is_fetched_again(store: Any) -> None:
    store.pipe("texts/a.csv", b"text,label\none,a\n")
    first = fetch("s3://texts/a.csv")
    store.pipe("texts/a.csv", b"text,label\ntwo,b\n")
    second = fetch("s3://texts/a.csv")
    assert (first.read_bytes(), second.read_bytes()) == (b"text,label\none,a\n", b"text,label\ntwo,b\n")


def test_a_file_of_a_store_that_names_no_changes_is_fetched_each_time(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An old file of the same size is not taken for the new one."""
    listing = {"/rows/a.txt": {"name": "/rows/a.txt", "size": 4, "type": "file"}}
    monkeypatch.setattr(type(memory), "find", lambda *arguments, **options: listing)
    for content in (b"old\n", b"new\n"):
        memory.pipe("/rows/a.txt", content)
        assert (fetch("memory://rows") / "a.txt").read_bytes() == content


def test_a_large_object_is_whole(store: Any) -> None:
    content = b"".join(hashlib.sha256(bytes([number])).digest() * 65_536 for number in range(20))
    assert len(content) > 4 * remote.COPY_BYTES
    store.pipe("texts/large.txt", content)
    assert fetch("s3://texts/large.txt").read_bytes() == content


def test_a_missing_object_and_bucket_are_one_line(store: Any) -> None:
    for address in ("s3://texts/nothing.csv", "s3://nowhere/at/all/"):
        with pytest.raises(UserError) as refused:
            fetch(address)
        message = str(refused.value)
        assert message.startswith(address)
        assert "\n" not in message
        assert "a-secret" not in message


def test_an_address_is_opened_as_a_path(memory: Any) -> None:
    memory.pipe("/reviews/train.csv", ROWS.encode())
    memory.pipe("/reviews/test.csv", ROWS.encode())
    opened = open_path("memory://reviews")
    assert opened.kind == "table"
    assert [*opened.splits] == ["train", "test"]
    assert opened.columns == {"text", "label"}


def test_messages_name_the_address(memory: Any) -> None:
    memory.pipe("/bucket/rows.jsonl", b'{"text": "a"}\n{"text": \n')
    path = fetch("memory://bucket/rows.jsonl")
    assert (
        shorten_unpacked_paths(f"{path}, line 2: not JSON") == "memory://bucket/rows.jsonl, line 2: not JSON"
    )


def test_a_fetch_that_was_stopped_goes_on(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        memory.pipe(f"/rows/{number}.txt", b"line\n" * (number + 1))
    copied: list[str] = []
    copy = remote._copy

    def stops_after_three(system: Any, file: remote.RemoteFile, path: Path) -> None:
        if len(copied) == 3:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_name(f".{path.name}.part").write_bytes(b"li")
            raise ConnectionError("the line is cut\nmore")
        copied.append(file.name.name)
        copy(system, file, path)

    monkeypatch.setattr(remote, "FETCHES", 1)
    monkeypatch.setattr(remote, "_copy", stops_after_three)
    with pytest.raises(UserError, match=r"^memory://rows/3.txt: can't be fetched: the line is cut$"):
        fetch("memory://rows")

    def counts(system: Any, file: remote.RemoteFile, path: Path) -> None:
        copied.append(file.name.name)
        copy(system, file, path)

    monkeypatch.setattr(remote, "_copy", counts)
    folder = fetch("memory://rows")
    assert copied == [f"{number}.txt" for number in range(6)], "whole files are not fetched again"
    assert whole_files(folder) == {f"{number}.txt": b"line\n" * (number + 1) for number in range(6)}


def test_a_file_that_ends_early_is_refused(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.pipe("/rows/a.txt", b"line\n" * 10)
    find = type(memory).find

    def longer(*arguments: Any, **options: Any) -> Any:
        listing = find(memory, *arguments[1:], **options)
        return {name: info | {"size": 60} for name, info in listing.items()}

    monkeypatch.setattr(type(memory), "find", longer)
    with pytest.raises(UserError, match="50 of 60 bytes came"):
        fetch("memory://rows")
    assert not [
        name for name in whole_files(remote_folder("")) if name.endswith("a.txt") and ".part" not in name
    ]


@pytest.mark.parametrize("name", ["/rows/../../up.txt", "/rows/a\\b.txt"])
def test_a_name_that_leads_out_is_refused(memory: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    listing = {name: {"name": name, "size": 1, "type": "file", "created": 0}}
    monkeypatch.setattr(type(memory), "find", lambda *arguments, **options: listing)
    with pytest.raises(UserError, match="leads out of its folder"):
        fetch("memory://rows")


def test_a_password_in_an_address_is_refused_and_not_shown() -> None:
    with pytest.raises(UserError) as refused:
        fetch("s3://key:hunter2@texts/a.csv")
    assert "hunter2" not in str(refused.value)


def test_an_unknown_store_is_one_line() -> None:
    with pytest.raises(UserError, match=r"^nostore://a/b: can't be fetched: Protocol not known: nostore$"):
        fetch("nostore://a/b")


def test_a_run_is_trained_scored_and_used_from_addresses(
    store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store.pipe("texts/reviews/train.csv", ROWS.encode())
    store.pipe("texts/reviews/test.csv", ROWS.encode())
    settings = [
        "--model",
        "text-classification",
        "--budget",
        "2steps",
        "--run",
        "run",
        "model.encoder.width=16",
    ]
    succeed("train", "s3://texts/reviews/", *settings)
    scores = json.loads(succeed("evaluate", "run", "s3://texts/reviews/test.csv", "--json").out)
    assert scores["examples"] == 40
    assert json.loads(succeed("evaluate", "run", "--json").out)["examples"] == 40, "its own test data"
    succeed("resume", "run", "--budget", "+1steps")
    answers = succeed("predict", "run", "s3://texts/reviews/test.csv").out
    assert len(answers.splitlines()) == 41
