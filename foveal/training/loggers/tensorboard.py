"""`--log tensorboard`: event files in the folder tensorboard of the run, for `tensorboard --logdir runs`."""

from collections.abc import Mapping
from typing import Any

from foveal.training.loggers.base import Logger, Present

FOLDER = "tensorboard"


class TensorBoardLogger(Logger):
    """Writes scalars, and the settings as a text.

    Events after the last flush may be lost in a crash. So a resumed run hides all from there on, and writes
    them again.
    """

    name = package = "tensorboard"

    def open(self, step: int, state: dict[str, Any]) -> Present:
        from torch.utils.tensorboard import SummaryWriter

        folder = self.run / FOLDER
        is_new = not folder.exists()
        purged = min(step, state.get("flushed", 0))
        self._writer: Any = SummaryWriter(str(folder), purge_step=None if is_new else purged)
        if is_new:
            text = self.config_text()
            self._writer.add_text("settings", "".join(f"    {line}\n" for line in text.splitlines()))
        return {"train": purged - 1, "valid": purged - 1}

    def write(self, values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def flush(self, step: int) -> None:
        self._writer.flush()
        self.save_state({"flushed": step})

    def close(self, reason: str) -> None:
        self._writer.close()
