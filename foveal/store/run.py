"""The run folder, which holds everything of a run and can be copied to another machine.

    config.toml  inputs/  run.json  plan.json  model.safetensors  metrics.jsonl  samples.jsonl  checkpoints/

`config.toml` and `inputs/` (tokenizer, labels ...) never change. `run.json` has their hashes.
"""

import errno
import hashlib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from foveal import __version__
from foveal.config import Config, ConfigError, parse_config, suggest
from foveal.config.old_names import LAST_OLD_FORMAT, upgrade
from foveal.core.errors import RunFailed, UserError
from foveal.store import durable
from foveal.store.locks import lock
from foveal.store.plan import Plan
from foveal.store.sealed import dataclass_from_dict, dataclass_to_dict, open_json, seal_json

FORMAT_VERSION = 2
WEIGHTS_FILE = "model.safetensors"
RUNS_FOLDER = Path("runs")
"""Default folder of runs."""


@dataclass(frozen=True)
class Run:
    """A run folder whose config and inputs are unchanged."""

    path: Path
    config: Config
    manifest: dict[str, Any]
    """Content of run.json: `format`, the versions `foveal` and `torch`, `threads`, `files` (their sha256) and
    `data`."""

    @property
    def is_old(self) -> bool:
        """Return whether an older version created the run, so that old names of settings are converted."""
        return bool(self.manifest["format"] <= LAST_OLD_FORMAT)

    @property
    def processor_folder(self) -> Path:
        return self.path / "inputs"

    @property
    def weights(self) -> Path:
        """Path of the best weights so far. The header of the file has their step and loss."""
        return self.path / WEIGHTS_FILE

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def samples(self) -> Path:
        return self.path / "samples.jsonl"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def fingerprint(self) -> str:
        """Hash of config and inputs. Checkpoints contain the fingerprint of their run."""
        return hashlib.sha256(seal_json(self.manifest["files"])).hexdigest()

    def read_plan(self) -> Plan | None:
        """Return the plan, or None if there is no plan yet."""
        path = self.path / "plan.json"
        if not path.exists():
            return None
        return dataclass_from_dict(Plan, open_json(path.read_bytes(), str(path)), str(path))

    def write_plan(self, plan: Plan) -> None:
        """Write the plan durably. From then on, a time budget is a number of steps."""
        durable.atomic_write(self.path / "plan.json", seal_json(dataclass_to_dict(plan)))


def check_run_path(path: Path) -> None:
    """Check that a run can be created at `path`. Nothing is written.

    Raises: UserError: `path` exists or can't be written.
    """
    if path.exists():
        raise UserError(f"{path} exists: choose another --run, or continue it: foveal resume {path}")
    above = next(parent for parent in path.absolute().parents if parent.exists())
    if not above.is_dir():
        raise UserError(f"{path}: {above} is a file, not a folder; choose another --run")
    if not os.access(above, os.W_OK | os.X_OK):
        raise UserError(f"{path}: no permission to write in {above}; choose another --run")


def check_outside_data(path: Path, *data: str | None) -> None:
    """Check that a run folder is not inside a folder of its data, where it would be read as data.

    Raises: UserError: the run folder is inside a folder of its data.
    """
    for folder in data:
        if folder and Path(folder).is_dir() and path.resolve().is_relative_to(Path(folder).resolve()):
            raise UserError(f"{path} is in {folder}, so it would be read as data: choose --run outside of it")


def create_run(
    path: Path,
    config: Config,
    config_toml: str,
    processor_files: Mapping[str, bytes],
    data: dict[str, Any],
    weights: bytes | None = None,
    extra_files: Mapping[str, bytes] | None = None,
) -> Run:
    """Create a run folder, completely or not at all.

    `config_toml` is the config as text, without unread settings. `processor_files` maps names below `inputs/`
    (`text/tokenizer.json`) to contents. `data` has facts about the data, for users and for
    `Run.manifest["data"]`. `weights` are the sealed weights of a trained model. `extra_files`
    (`skipped.jsonl`) are for users only.

    Raises: UserError: `path` exists or can't be written.
    """
    check_run_path(path)
    files = {"config.toml": config_toml.encode()}
    files |= {f"inputs/{name}": content for name, content in processor_files.items()}
    facts = {
        "format": FORMAT_VERSION,
        "foveal": __version__,
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())},
        "data": data,
    }
    files |= {"run.json": seal_json(facts), "metrics.jsonl": b"", "samples.jsonl": b""}
    files |= {} if weights is None else {WEIGHTS_FILE: weights}
    files |= extra_files or {}
    try:
        with durable.atomic_folder(path) as folder:
            (folder / "checkpoints").mkdir()
            for name, content in files.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                durable.write_synced(folder / name, content)
    except RunFailed as failure:
        path_errors = (FileExistsError, NotADirectoryError, PermissionError)
        if (
            isinstance(failure.__cause__, path_errors)
            or getattr(failure.__cause__, "errno", 0) == errno.ENOTEMPTY
        ):
            raise UserError(f"{failure}; choose another --run") from None
        raise
    return Run(path, config, facts)


def open_run(path: Path) -> Run:
    """Read and verify a run folder.

    Raises: UserError: the folder is missing, not a run, made by a newer version, or edited.
    """
    facts_path = path / "run.json"
    if not path.exists():
        nearby = [
            str(manifest.parent)
            for folder in (path.parent, RUNS_FOLDER)
            for manifest in folder.glob("*/run.json")
        ]
        raise UserError(f"{path}: no such run{suggest(str(path), set(nearby)) if nearby else ''}")
    if not facts_path.is_file():
        hint = f", but a config.json: foveal import {path}" if (path / "config.json").is_file() else ""
        raise UserError(f"{path}: not a Foveal run: it has no run.json{hint}")
    facts = open_json(facts_path.read_bytes(), str(facts_path))
    if not isinstance(facts.get("format"), int) or not isinstance(facts.get("files"), dict):
        raise UserError(f"{path}: not a Foveal run: its run.json is not that of a run")
    if facts["format"] > FORMAT_VERSION:
        raise UserError(
            f"{path}: written by a newer version of Foveal ({facts['foveal']}): upgrade Foveal to use it"
        )
    for name, digest in facts["files"].items():
        if not (path / name).is_file():
            raise UserError(f"{path / name}: missing, and the run can't be used without this file")
        if durable.file_sha256(path / name) != digest:
            raise UserError(
                f"{path / name}: edited since the run was created; restore the file, or train a new run"
            )
    for name in ("metrics.jsonl", "samples.jsonl", "checkpoints"):
        if not (path / name).exists():
            raise UserError(f"{path / name}: missing; the run is not complete; restore it")
    try:
        tables = tomllib.loads((path / "config.toml").read_text(encoding="utf-8"))
        config = parse_config(upgrade(tables) if facts["format"] <= LAST_OLD_FORMAT else tables)
    except ConfigError as error:
        raise UserError(f"{path / 'config.toml'}: {error}") from None
    return Run(path, config, facts)


@contextmanager
def run_lock(run: Run) -> Iterator[None]:
    """Return a context that only one process at a time can enter for each run.

    A killed process releases the lock.

    Raises: UserError: another process is training the run.
    """
    with (run.path / "run.json").open("r+b") as file:  # NFS gives locks only to files open for writing
        if not lock(file.fileno(), wait=False):
            raise UserError(
                f"{run.path}: another process is training this run; wait for that process, or stop it"
            )
        yield


def default_run_path(data: str, preset: str, parent: Path = RUNS_FOLDER) -> Path:
    """Return the first unused `runs/<data>-<preset>-<n>`."""
    stem = re.sub(r"[^\w.-]+", "-", f"{Path(data).stem}-{Path(preset).stem}")
    number = 1
    while (parent / f"{stem}-{number}").exists():
        number += 1
    return parent / f"{stem}-{number}"


def environment_changes(run: Run) -> str:
    """Describe how torch and its threads differ from the run's. Return an empty string if they are the same.

    With other versions or threads, the last bits of sums may differ.
    """
    then = f"torch {run.manifest['torch']} on {run.manifest['threads']} threads"
    now = f"torch {torch.__version__} on {torch.get_num_threads()} threads"
    return "" if then == now else f"{then}, now {now}"
