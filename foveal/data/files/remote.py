"""DATA at the address of an object store, such as `s3://bucket/reviews/`, fetched once into the cache.

fsspec knows the stores. A folder in the cache has the files of one address in one state: a file that changes
there is fetched into another folder. A fetch that was killed goes on with the files that are missing. Where a
store does not say when a file changes, the file is fetched each time.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any

from foveal.core.errors import UserError
from foveal.core.extras import require
from foveal.core.log import log_progress, notify
from foveal.core.terminal_text import counted
from foveal.store.cache import file_lock, remote_folder

ADDRESS = re.compile(r"(?P<protocol>[a-z][a-z0-9+]*)://(?P<path>.*)", re.DOTALL)
COPY_BYTES = 2**23
"""Bytes of a file that are in memory at once."""
FETCHES = 8
"""Files that are fetched at the same time: for small files, a store's answer takes longer than the data."""
STATE_FACTS = ("ETag", "etag", "sha256", "md5Hash", "oid", "blob_id", "LastModified", "mtime", "created")
"""What stores call the facts that change with a file."""


@dataclass(frozen=True)
class RemoteFile:
    """A file of an object store. `name` is its place below the address."""

    name: PurePosixPath
    path: str
    size: int | None
    """Its bytes; None if the store does not say."""
    state: str
    """What changes with the file; empty if the store does not say."""


def is_remote(data: str) -> bool:
    """Return whether DATA is the address of an object store."""
    return ADDRESS.match(data) is not None


def fetch(address: str) -> Path:
    """Return the file or folder of an address in the cache, fetched if it is not there.

    Raises: UserError: fsspec or the part of it for this store is missing, there is no such file, the address
        has a password, or a file can't be fetched.
    """
    match = ADDRESS.match(address)
    assert match is not None
    if "@" in match["path"].partition("/")[0]:
        raise UserError(
            f"{match['protocol']}://...@...: the run would keep the password; leave it out, and give it in "
            "the variables or the file of the store's own client"
        )
    require("fsspec", f"{match['protocol']}://")
    with _explain_failure(address):
        system, path = import_module("fsspec.core").url_to_fs(address)
        files = _list_files(system, path, address)
    facts = repr((address, [(str(file.name), file.size, file.state) for file in files]))
    digest = hashlib.sha256(facts.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    whole = PurePosixPath(match["path"].strip("/"))
    root = remote_folder(digest) / match["protocol"] / whole
    _check_stays_inside(whole, address)
    with file_lock(remote_folder(digest)):
        missing = [file for file in files if not _is_whole(root / file.name, file)]
        if missing:
            _fetch_files(system, missing, root, address)
    return root


def _list_files(system: Any, path: str, address: str) -> list[RemoteFile]:
    """Return the files of a folder by their names, or the file itself.

    Raises: UserError: there is none, or a name leads out of the folder.
    """
    system.invalidate_cache()
    listing = system.find(path, detail=True)
    if not listing and system.isfile(path):
        listing = {path: system.info(path)}
    files = []
    for name, info in sorted(listing.items()):
        inside = "" if name == path else name.removeprefix(path.rstrip("/")).lstrip("/")
        if name.endswith("/") or info.get("type") == "directory":
            continue
        state = next((str(info[fact]) for fact in STATE_FACTS if info.get(fact) is not None), "")
        file = RemoteFile(PurePosixPath(inside), name, info.get("size"), state)
        _check_stays_inside(file.name, f"{address}: {name}")
        files.append(file)
    if not files:
        raise UserError(f"{address}: no such file, and no files in a folder of that name")
    return files


def _check_stays_inside(name: PurePosixPath, place: str) -> None:
    """Check that a name can be one below a folder of this machine.

    Raises: UserError: it can't.
    """
    if ".." in name.parts or name.is_absolute() or "\\" in str(name) or "\0" in str(name):
        raise UserError(f"{place}: the name leads out of its folder; rename it in the store")


def _is_whole(path: Path, file: RemoteFile) -> bool:
    return bool(file.state) and path.is_file() and file.size in (None, path.stat().st_size)


def _fetch_files(system: Any, files: list[RemoteFile], root: Path, address: str) -> None:
    """Fetch files, and say how many are done.

    Raises: UserError: a file can't be fetched.
    """
    total = sum(file.size or 0 for file in files)
    notify(f"{address}: fetching {counted(len(files), 'file')}, {total / 1e6:,.1f} MB, into the cache")

    def fetch_one(file: RemoteFile) -> None:
        with _explain_failure(f"{address.rstrip('/')}/{file.name}" if file.name.name else address):
            _copy(system, file, root / file.name)

    pool = ThreadPoolExecutor(FETCHES)
    try:
        for _ in log_progress(pool.map(fetch_one, files), len(files), "files", notify):
            pass
    finally:
        pool.shutdown(cancel_futures=True)


def _copy(system: Any, file: RemoteFile, path: Path) -> None:
    """Write a file, which appears when it is whole.

    Raises: UserError: it ends early.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    with system.open(file.path, "rb") as source, part.open("wb") as out:
        while block := source.read(COPY_BYTES):
            out.write(block)
    size = part.stat().st_size
    if file.size not in (None, size):
        raise UserError(f"{file.path}: {size:,} of {file.size:,} bytes came; try again")
    os.replace(part, path)


@contextmanager
def _explain_failure(place: str) -> Iterator[None]:
    """Return a context in which what a store's client raises is one line that begins with the place.

    Raises: UserError: the client failed.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # each client of fsspec has exceptions of its own
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = lines[0] if lines else type(error).__name__
        raise UserError(f"{place}: can't be fetched: {reason}") from None
