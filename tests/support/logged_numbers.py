"""What a logger has logged, read by the library that its users have."""

import csv
import json
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Numbers = dict[str, list[tuple[int, float]]]
"""The (step, number) pairs of each name, in the order of the log."""


def metrics_of_run(run: Path) -> Numbers:
    """The numbers that a log has to have: those of metrics.jsonl."""
    numbers: Numbers = {}
    for line in (run / "metrics.jsonl").read_text().splitlines():
        record = json.loads(line)
        kind = {"step": "train", "evaluation": "valid"}[record.pop("kind")]
        step, terms = record.pop("step"), record.pop("terms", {})
        for name, value in (record | terms).items():
            numbers.setdefault(f"{kind}/{name}", []).append((step, value))
    return numbers


def from_csv(run: Path) -> Numbers:
    numbers: Numbers = {}
    with (run / "metrics.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            step = int(row.pop("step"))
            for name, text in row.items():
                if text:
                    numbers.setdefault(name, []).append((step, float(text)))
    return numbers


def from_tensorboard(run: Path) -> Numbers:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run / "tensorboard"), size_guidance={"scalars": 0})
    events.Reload()
    assert "learning" not in events.Tags()["tensors"]
    return {
        name: [(event.step, event.value) for event in events.Scalars(name)]
        for name in events.Tags()["scalars"]
    }


def logger_state(run: Path, name: str) -> dict[str, Any]:
    return dict(json.loads((run / "loggers" / f"{name}.json").read_text()))


def from_mlflow(run: Path) -> Numbers:
    from mlflow import MlflowClient

    client, run_id = MlflowClient(), logger_state(run, "mlflow")["run"]
    names = client.get_run(run_id).data.metrics
    return {
        name: [(metric.step, metric.value) for metric in client.get_metric_history(run_id, name)]
        for name in names
    }


def from_trackio(run: Path) -> Numbers:
    from trackio.sqlite_storage import SQLiteStorage

    numbers: Numbers = {}
    for row in SQLiteStorage.get_logs("foveal", logger_state(run, "trackio")["run"]):
        for name, value in row.items():
            if "/" in name:
                numbers.setdefault(name, []).append((row["step"], value))
    return numbers


def records(content: bytes) -> Iterator[bytes]:
    """The records of a .wandb file, which has the form of LevelDB's log: blocks of fragments."""
    at, record = 7, b""
    while at + 7 <= len(content):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        length, kind = struct.unpack("<HB", content[at + 4 : at + 7])
        record += content[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last fragment
            yield record
            record = b""


def from_wandb(run: Path) -> Numbers:
    """Read the files of offline runs, in the order of their times."""
    import wandb
    from wandb.proto import wandb_internal_pb2

    wandb.teardown()  # so that its process has written all
    numbers: Numbers = {}
    for file in sorted(Path(os.environ["WANDB_DIR"]).rglob("*.wandb"), key=lambda path: path.stat().st_mtime):
        for content in records(file.read_bytes()):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(content)
            items = record.history.item
            row = {(item.key or "/".join(item.nested_key)): json.loads(item.value_json) for item in items}
            for name, value in row.items():
                if not name.startswith("_"):
                    numbers.setdefault(name, []).append((row["_step"], value))
    return numbers


READERS: dict[str, Callable[[Path], Numbers]] = {
    "csv": from_csv,
    "tensorboard": from_tensorboard,
    "mlflow": from_mlflow,
    "trackio": from_trackio,
    "wandb": from_wandb,
}
