"""The base class of loggers. A resumed run goes on in the same log, without a step twice or left out.

A run's own metrics.jsonl has every number. At the start, a logger gets those lines of it that its log does
not have yet: the end of a log after a crash, or all of it if the logger is new to the run.
"""

import tomllib
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from foveal.config.old_names import flatten
from foveal.core.callbacks import Callback, Record, TrainingInfo
from foveal.core.extras import require
from foveal.core.parse_json import parse_json
from foveal.store.durable import atomic_write
from foveal.store.regular_files import read_regular
from foveal.store.sealed import open_json, seal_json

STATE_FOLDER = "loggers"
"""The folder of a run with a file for each of its loggers."""
KINDS = {"step": "train", "evaluation": "valid"}
"""The names of the numbers in the log, by the kind of the line in metrics.jsonl."""
NOT_LOGGED = {"kind", "step", "steps", "best_step", "seconds_left", "seconds_left_in_steps"}
Present = Mapping[str, int]
"""The last steps that a log has, by `train` and `valid`."""


class Logger(Callback):
    """A logger of one run. Its numbers are called `train/loss`, `valid/loss`, `final/accuracy` ..."""

    name: ClassVar[str]
    """The name that users give."""
    package: ClassVar[str] = ""
    """The package that has to be installed."""

    def __init__(self, run: Path):
        """Remember the run, which need not exist yet.

        Raises: UserError: the package is not installed.
        """
        self.check_installed()
        self.run = run
        self._step = 0
        self._is_open = False
        self._present: Present = {}

    @classmethod
    def check_installed(cls) -> None:
        """Check that the package can be imported.

        Raises: MissingPackageError: it is not installed.
        """
        if cls.package:
            require(cls.package, f"--log {cls.name}")

    @abstractmethod
    def open(self, step: int, state: dict[str, Any]) -> Present:
        """Open the log of the run, which goes on at `step`. Return the last steps that the log has.

        `state` is what `save_state` stored; empty for a new log.
        """

    @abstractmethod
    def write(self, values: Mapping[str, float], step: int) -> None:
        """Log numbers by their names."""

    def flush(self, step: int) -> None:  # not all loggers keep anything back
        """Write all that is kept back, after a checkpoint at `step`."""

    @abstractmethod
    def close(self, reason: str) -> None:
        """Close the log; `reason` is that of `Callback.on_end`."""

    def settings(self) -> dict[str, Any]:
        """Return the settings of the run by their dotted keys."""
        return dict(flatten(tomllib.loads(self.config_text())))

    def config_text(self) -> str:
        """Return the settings of the run as TOML."""
        return read_regular(self.run / "config.toml").decode()

    def save_state(self, state: dict[str, Any]) -> None:
        """Store what opens the same log again."""
        path = self._state_file
        path.parent.mkdir(exist_ok=True)
        atomic_write(path, seal_json(state))

    def on_start(self, info: TrainingInfo) -> None:
        self._step = info.step
        self._open()

    def on_step(self, record: Record) -> None:
        self._write(record)

    def on_evaluation(self, record: Record) -> None:
        self._write(record)

    def on_checkpoint(self, step: int, path: Path) -> None:
        self.flush(step)

    def on_test(self, record: Record) -> None:
        if not self._is_open:
            self._step = record.get("steps", 0)
            self._open()
        self.write(_numbers(record, "final"), self._step)

    def on_end(self, record: Record) -> None:
        if self._is_open:
            self._is_open = False
            self.close(record["reason"])

    @property
    def _state_file(self) -> Path:
        return self.run / STATE_FOLDER / f"{self.name}.json"

    def _open(self) -> None:
        path = self._state_file
        state = open_json(read_regular(path), str(path)) if path.is_file() else {}
        self._present = self.open(self._step, state)
        self._is_open = True
        if not path.is_file():
            self.save_state({})
        for line in read_regular(self.run / "metrics.jsonl").splitlines():
            record = parse_json(line)
            if record["kind"] in KINDS:
                self._write(record)

    def _write(self, record: Record) -> None:
        """Log the numbers of a record, unless the log has them."""
        self._step, kind = record["step"], KINDS[record["kind"]]
        if self._step > self._present.get(kind, -1):
            self.write(_numbers(record, kind), self._step)


def _numbers(record: Record, prefix: str) -> dict[str, float]:
    """Return the finite numbers of a record by their names in the log."""
    return {
        f"{prefix}/{name}": value
        for name, value in (record | record.get("terms", {})).items()
        if type(value) in (int, float) and name not in NOT_LOGGED and abs(value) < float("inf")
    }
