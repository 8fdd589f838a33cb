"""A callback: a file beside the run's logs that says how far the training is."""

from pathlib import Path

import foveal
from foveal.core.callbacks import Record, TrainingInfo


@foveal.register_callback("heartbeat")
class Heartbeat(foveal.Callback):
    def __init__(self, file: str = "heartbeat.txt"):
        self.file, self.path = file, Path(file)

    def on_start(self, info: TrainingInfo) -> None:
        self.path = info.run / self.file

    def on_evaluation(self, record: Record) -> None:
        self.path.write_text(f"step {record['step']}: loss {record['loss']:.4f}\n")

    def on_end(self, record: Record) -> None:
        self.path.write_text(f"step {record['step']}: ended ({record['reason']})\n")
