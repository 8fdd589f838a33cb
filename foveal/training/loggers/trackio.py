"""`--log trackio`: a run of Trackio, in the project TRACKIO_PROJECT (else foveal)."""

import os
from collections.abc import Mapping
from typing import Any

from foveal.training.loggers.base import Logger, Present


class TrackioLogger(Logger):
    """Logs metrics and settings to Trackio's local database, or wherever its environment variables say.

    A resumed run goes on after the last step in the database.
    """

    name = package = "trackio"

    def open(self, step: int, state: dict[str, Any]) -> Present:
        import trackio

        self._run: Any = trackio.init(
            project=os.environ.get("TRACKIO_PROJECT", "foveal"),
            name=state.get("run", self.run.name),
            resume="allow" if state else "never",
            config=self.settings(),
            embed=False,
            auto_log_cpu=False,
            auto_log_gpu=False,
        )
        self.save_state({"run": self._run.name})
        last = self._run._next_step - 1
        return {"train": last, "valid": last}

    def write(self, values: Mapping[str, float], step: int) -> None:
        self._run.log(dict(values), step=step)

    def close(self, reason: str) -> None:
        self._run.finish()
