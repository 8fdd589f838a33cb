"""What `foveal tune` makes of settings with a planted fault: whether the fault is named, and how the recommended
settings end beside those of the preset, trained apart.

    FOVEAL_DATA=folder python -m benchmarks.tuning --runs folder                          # about seven hours
    FOVEAL_DATA=folder python -m benchmarks.tuning --runs folder --only shakespeare-rate,shakespeare-preset

Each study takes 20 minutes. Its recommendation and the preset are then trained with three seeds each, for the
preset's budget, and the medians of their test losses compared. Studies and trainings are stored in --runs, so a
stopped script continues. With OMP_NUM_THREADS=1 two scripts can run side by side, each on a core.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.timing import Measurement, option_parser, report

SEEDS = 3
FROM_FAULT, FROM_PRESET = 1.02, 1.01
"""The most that a recommended loss may be, as a multiple of the preset's."""


@dataclass(frozen=True)
class Faults:
    """A data set, and settings at fault by their kind."""

    data: str
    planted: dict[str, tuple[str, ...]]


SUBJECTS = {
    "shakespeare": Faults(
        "tinyshakespeare.txt",
        {
            "rate": ("optimizer.lr=1.2",),
            "initialization": ("model.initialization=1",),
            "regularization": ("model.dropout=0", "optimizer.weight_decay=0"),
        },
    ),
    "movies": Faults(
        "movie-reviews",
        {
            "rate": ("optimizer.lr=0.2",),
            "initialization": ("model.initialization=10",),
            "regularization": ("model.dropout=0", "model.encoder.dropout=0", "optimizer.weight_decay=0"),
        },
    ),
    "fashion": Faults(
        "fashion-mnist",
        {
            "rate": ("optimizer.lr=10",),
            "initialization": ("model.initialization=1",),
            "regularization": ("optimizer.weight_decay=0", "data.augment.crop=0"),
        },
    ),
}
PRESET = "preset"
"""The kind of a study that starts from the preset."""


def run_foveal(folder: Path, *arguments: str) -> dict[str, Any]:
    """Run a command, and return its result. What it prints for people is added to a file.

    Raises: RuntimeError: it failed.
    """
    print("foveal", *arguments, file=sys.stderr, flush=True)
    log = folder.with_name(f"{folder.name}.log")
    with log.open("a") as file:
        command = [sys.executable, "-m", "foveal", *arguments, "--run", str(folder), "--json"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=file, text=True)
    if done.returncode:
        raise RuntimeError(log.read_text())
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def tuned(subject: str, kind: str, runs: Path) -> dict[str, Any]:
    """Return what a study says, which is made if there is none."""
    folder = runs / f"{subject}-{kind}"
    settings = SUBJECTS[subject].planted.get(kind, ())
    if not (folder / "report.json").exists():
        run_foveal(folder, "tune", path_of(SUBJECTS[subject].data), *settings)
    result: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return result


def path_of(data: str) -> str:
    """Return the path of a file of FOVEAL_DATA, or the name of a data set."""
    file = Path(os.environ["FOVEAL_DATA"], data)
    return str(file) if file.exists() else data


def losses(command: list[str], runs: Path, name: str) -> list[float]:
    """Return the losses of a training with each seed, which are made if there are none."""
    results = []
    for seed in range(SEEDS):
        file = runs / f"{name}-{seed}.json"
        if not file.exists():
            result = run_foveal(runs / f"{name}-{seed}", *command, f"training.seed={seed}")
            file.write_text(json.dumps(result))
        results.append(json.loads(file.read_text()))
    return [float(result["loss"]) for result in results]


def compare(subject: str, kind: str, runs: Path) -> Measurement:
    """Return the loss of the settings that a study recommends, over the preset's."""
    study = tuned(subject, kind, runs)
    by_preset = losses(["train", path_of(SUBJECTS[subject].data)], runs, f"{subject}-by-preset")
    _, *command = study["command"]
    recommended = losses(command, runs, f"{subject}-{kind}-recommended") if study["recommended"] else by_preset
    value = median(recommended) / median(by_preset)
    changed = " ".join(f"{key}={text}" for key, text in study["recommended"].items()) or "no changes"
    notes = [study["verdict"], f"recommended: {changed}"]
    notes += [" ".join(f"{loss:.4f}" for loss in recommended) + " over " + " ".join(f"{x:.4f}" for x in by_preset)]
    title = f"{subject}, {kind}: loss of the recommended settings over the preset's"
    print(f"{title}: {value:.4f}; {'; '.join(notes)}", file=sys.stderr, flush=True)
    return Measurement(title, value, FROM_PRESET if kind == PRESET else FROM_FAULT, True, notes)


def main() -> None:
    names = [f"{subject}-{kind}" for subject, faults in SUBJECTS.items() for kind in (*faults.planted, PRESET)]
    parser = option_parser(__doc__)
    parser.add_argument("--runs", type=Path, required=True, help="the folder of studies and trainings")
    parser.add_argument("--only", default=",".join(names), help="studies, with commas between them")
    options = parser.parse_args()
    if "FOVEAL_DATA" not in os.environ:
        parser.error("set FOVEAL_DATA to the folder of the data")
    options.runs.mkdir(parents=True, exist_ok=True)
    studies = [name.rpartition("-") for name in options.only.split(",")]
    report([compare(subject, kind, options.runs) for subject, _, kind in studies], options)


if __name__ == "__main__":
    main()
