"""`--log wandb`: a run of Weights & Biases, in the project WANDB_PROJECT (else foveal)."""

import os
import uuid
from collections.abc import Mapping
from typing import Any

from foveal.training.loggers.base import Logger, Present


class WandbLogger(Logger):
    """Sends metrics and settings to Weights & Biases, or keeps them in ./wandb with WANDB_MODE=offline.

    Weights & Biases takes steps in rising order alone, and ignores those that come again. Online it says
    which was the last; offline, the last checkpoint or the end of the process says so.
    """

    name = package = "wandb"

    def open(self, step: int, state: dict[str, Any]) -> Present:
        import wandb

        self._id = state.get("run") or uuid.uuid4().hex[:8]
        self.save_state({**state, "run": self._id})
        self._last = state.get("flushed", -1)
        self._run: Any = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "foveal"),
            name=self.run.name,
            id=self._id,
            resume="allow",
            config=self.settings(),
        )
        last = max(self._run.step - 1, state.get("flushed", -1))
        return {"train": last, "valid": last}

    def write(self, values: Mapping[str, float], step: int) -> None:
        self._last = step
        self._run.log(dict(values), step=step)

    def flush(self, step: int) -> None:
        self.save_state({"run": self._id, "flushed": self._last})

    def close(self, reason: str) -> None:
        self.flush(self._last)
        self._run.finish(exit_code=int(reason in ("stopped", "failed")))
