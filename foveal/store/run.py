"""The run folder, which holds everything of a run and can be copied to another machine.

    config.toml  inputs/  plugins/  run.json  plan.json  model.safetensors  metrics.jsonl  samples.jsonl
    statistics.jsonl  checkpoints/

`config.toml`, `inputs/` (tokenizer, labels ...) and `plugins/` (their sources, if there are plugins) never
change. `run.json` has their hashes.
"""

import errno
import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from foveal import __version__
from foveal.config import Config, ConfigError, parse_config, parse_toml, suggest
from foveal.config.old_names import LAST_OLD_FORMAT, upgrade
from foveal.core.errors import RunFailed, UserError
from foveal.plugins.source import NO_PLUGINS, RunPlugins
from foveal.store import durable
from foveal.store.locks import lock
from foveal.store.manifest import LOCK_FILE, MANIFEST_FILE, LogUnits, read_manifest
from foveal.store.plan import Plans, plans_from_json
from foveal.store.regular_files import check_only_regular, open_regular, read_regular
from foveal.store.run_paths import RUNS_FOLDER
from foveal.store.sealed_json import open_json, seal_json

FORMAT_VERSION, LOGS = 2, ("metrics.jsonl", "samples.jsonl", "statistics.jsonl")
WEIGHTS_FILE, CURVES_FILE = "model.safetensors", "curves.png"
MAX_NAMED_RUNS = 5
"""Runs of a folder at most that an error names."""
MODULE_KEY = "module"
"""The key of the facts about the code of a run that trained the user's own module."""


class RunExistsError(UserError):
    """The folder of a new run exists, or another process is creating it."""


@dataclass(frozen=True)
class RunFolder:
    """A run folder whose config and inputs are unchanged."""

    path: Path
    config: Config
    manifest: dict[str, Any]
    """Content of run.json: `format`, the versions `foveal` and `torch`, `threads`, `files` (their sha256),
    `data`; `plugins` (the modules of each) and `log_units` if there are any."""

    @property
    def is_old(self) -> bool:
        """Return whether an older version created the run, so that old names of settings are converted."""
        return bool(self.manifest["format"] <= LAST_OLD_FORMAT)

    @property
    def has_log(self) -> bool:
        """Return whether the training has logged anything yet."""
        return self.metrics.is_file() and self.metrics.stat().st_size > 0

    @property
    def log_units(self) -> LogUnits | None:
        """Return what the numbers of the log mean; None if the run was imported or is older than these
        facts."""
        units = self.manifest.get("log_units")
        return None if units is None else LogUnits.model_validate(units)

    @property
    def has_own_module(self) -> bool:
        """Return whether the run trained the user's own module (`foveal.Trainer`), so that it has no task."""
        return MODULE_KEY in self.manifest["data"]

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
    def statistics(self) -> Path:
        return self.path / "statistics.jsonl"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def fingerprint(self) -> str:
        """Hash of config and inputs, which is in each checkpoint of the run."""
        return hashlib.sha256(seal_json(self.manifest["files"])).hexdigest()

    def read_plans(self) -> Plans:
        """Return the plans, if there are any."""
        path = self.path / "plan.json"
        if not os.path.lexists(path):
            return Plans()
        return plans_from_json(open_json(read_regular(path), str(path)), str(path))

    def write_plans(self, plans: Plans) -> None:
        """Write the plans durably. From then on, a time budget is a number of steps."""
        durable.atomic_write(self.path / "plan.json", seal_json(plans.to_json()))

    @property
    def curves(self) -> Path:
        return self.path / CURVES_FILE


def check_run_path(path: Path) -> None:
    """Check that a run can be created at `path`. A folder is created beside `path`, and removed again.

    Raises: UserError: `path` exists or can't be written.
    """
    above = _check_unused(path)
    try:  # file systems such as /proc deny no permission, but take no new folders
        os.rmdir(tempfile.mkdtemp(prefix=".", dir=above))
    except OSError as error:
        raise UserError(
            f"{path}: can't create a folder in {above}: {error.strerror}; choose another --run"
        ) from None


def _check_unused(path: Path) -> Path:
    """Return the existing folder in which the run at `path` is created.

    Raises: UserError: `path` exists, or permission is missing.
    """
    if path.exists():
        raise RunExistsError(f"{path} exists: choose another --run, or continue it: foveal resume {path}")
    above = next(parent for parent in path.absolute().parents if parent.exists())
    if not above.is_dir():
        raise UserError(f"{path}: {above} is a file, not a folder; choose another --run")
    if not os.access(above, os.W_OK | os.X_OK):
        raise UserError(f"{path}: no permission to write in {above}; choose another --run")
    return above


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
    plugins: RunPlugins = NO_PLUGINS,
    log_units: LogUnits | None = None,
) -> RunFolder:
    """Create a run folder, completely or not at all.

    `config_toml` is the config as text, without unread settings. `processor_files` maps names below `inputs/`
    (`text/tokenizer.json`) to contents. `data` has facts about the data, for users and for
    `RunFolder.manifest["data"]`. `weights` are the sealed weights of a trained model. `extra_files`
    (`skipped.jsonl`) are for users only. `plugins` are those that the run needs. `log_units` say
    what the numbers of its log mean.

    Raises: RunExistsError: `path` exists, or another process is creating it.
    Raises: UserError: `path` can't be written.
    """
    import torch  # takes a second, which opening a run does not need

    _check_unused(path)
    files = {"config.toml": config_toml.encode()}
    files |= {f"inputs/{name}": content for name, content in processor_files.items()} | {**plugins.files}
    facts = {
        "format": FORMAT_VERSION,
        "foveal": __version__,
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())},
        "data": data,
    }
    facts |= {"plugins": plugins.modules} if plugins.modules else {}
    facts |= {} if log_units is None else {"log_units": log_units.model_dump()}
    files |= {MANIFEST_FILE: seal_json(facts)} | dict.fromkeys(LOGS, b"")
    files |= {} if weights is None else {WEIGHTS_FILE: weights}
    files |= extra_files or {}
    try:
        with durable.atomic_folder(path) as folder:
            (folder / "checkpoints").mkdir()
            for name, content in files.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                durable.write_synced(folder / name, content)
    except RunFailed as failure:
        cause = failure.__cause__
        if isinstance(cause, FileExistsError) or getattr(cause, "errno", 0) == errno.ENOTEMPTY:
            raise RunExistsError(f"{failure}; choose another --run") from None
        if isinstance(cause, (NotADirectoryError, PermissionError)):
            raise UserError(f"{failure}; choose another --run") from None
        raise
    return RunFolder(path, config, facts)


def open_run(path: str | Path) -> RunFolder:
    """Read and verify a run folder.

    Raises: UserError: the folder is missing, not a run, made by a newer version, or edited.
    """
    path = Path(path)
    facts_path = path / MANIFEST_FILE
    if not path.exists():
        nearby = [
            str(manifest.parent)
            for folder in (path.parent, RUNS_FOLDER)
            for manifest in folder.glob("*/run.json")
        ]
        raise UserError(f"{path}: no such run{suggest(str(path), set(nearby)) if nearby else ''}")
    if not os.path.lexists(facts_path):
        hint = f", but a config.json: foveal import {path}" if (path / "config.json").is_file() else ""
        runs = sorted(str(manifest.parent) for manifest in path.glob("*/run.json"))
        more = ", ..." if len(runs) > MAX_NAMED_RUNS else ""
        hint = f"; it holds runs: {', '.join(runs[:MAX_NAMED_RUNS])}{more}" if runs else hint
        raise UserError(f"{path}: not a Foveal run: it has no run.json{hint}")
    check_only_regular(path)
    facts = read_manifest(path)
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
    try:
        tables = parse_toml(read_regular(path / "config.toml"))
        config = parse_config(upgrade(tables) if facts["format"] <= LAST_OLD_FORMAT else tables)
    except ConfigError as error:
        raise UserError(f"{path / 'config.toml'}: {error}") from None
    return RunFolder(path, config, facts)


def check_resumable(run: RunFolder) -> None:
    """Check that the files exist that only training needs, and that a shipped run may lack.

    Raises: UserError: a file is missing.
    """
    for path in (run.metrics, run.samples, run.checkpoints):
        if not path.exists():
            raise UserError(
                f"{path}: missing, so training can't continue; restore it, or train a new run: "
                f"foveal train DATA --from {quote(str(run.path))}"
            )


@contextmanager
def run_lock(run: RunFolder) -> Iterator[None]:
    """Return a context that only one process at a time can enter for each run.

    A killed process releases the lock.

    Raises: UserError: another process is training the run.
    """
    # A file of its own, since Windows lets nobody read a locked file. NFS locks only files open for writing.
    with open(open_regular(run.path / LOCK_FILE, os.O_RDWR | os.O_CREAT), "r+b") as file:
        if not lock(file.fileno(), wait=False):
            raise UserError(
                f"{run.path}: another process is training this run; wait for that process, or stop it"
            )
        yield


def environment_changes(run: RunFolder) -> str:
    """Describe how torch and its threads differ from the run's. Return an empty string if they are the same.

    With other versions or threads, the last bits of sums may differ.
    """
    import torch

    then = f"torch {run.manifest['torch']} on {run.manifest['threads']} threads"
    now = f"torch {torch.__version__} on {torch.get_num_threads()} threads"
    return "" if then == now else f"{then}, now {now}"
