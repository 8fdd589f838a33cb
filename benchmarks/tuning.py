"""What `foveal tune` makes of settings with a planted fault: whether it names the fault, and how the settings
that it recommends end beside those of the preset.

    FOVEAL_DATA=folder python -m benchmarks.tuning --runs folder                # about seven hours
    FOVEAL_DATA=folder python -m benchmarks.tuning --runs folder --only shakespeare-rate,shakespeare-preset

Each study takes 20 minutes. What it recommends and the preset are then trained in turn with three seeds
each, for the preset's budget, and the medians of their test losses are compared. Studies and trainings are
stored in --runs, so a stopped script continues. With OMP_NUM_THREADS=1 two scripts can run side by side, each
on a core and on data of its own.
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

BUDGET, QUICK_BUDGET = "20m", "3m"
"""Of a study."""
SEEDS = 3
FROM_FAULT, FROM_PRESET = 1.02, 1.01
"""The most that a recommended loss may be, as a multiple of the preset's."""


@dataclass(frozen=True)
class Faults:
    """A data set, and settings at fault by their kind."""

    data: str
    options: tuple[str, ...]
    """Beside the settings: a setting of the model alone would choose another preset."""
    planted: dict[str, tuple[str, ...]]


# Wrong first weights are planted in models with attention and in the network for images. `demo` and the
# preset of movie reviews are recurrent, and refuse `model.initialization`, which no layer of theirs is for.
SUBJECTS = {
    "shakespeare": Faults(
        "tinyshakespeare.txt",
        ("--model", "demo"),
        {
            "rate": ("optimizer.lr=1.2",),
            "regularization": ("model.dropout=0", "optimizer.weight_decay=0"),
        },
    ),
    "shakespeare-attention": Faults(
        "tinyshakespeare.txt", ("--model", "attention"), {"initialization": ("model.initialization=1",)}
    ),
    "movies": Faults(
        "movie-reviews",
        (),
        {
            "rate": ("optimizer.lr=0.2",),
            "regularization": ("model.dropout=0", "model.encoder.dropout=0", "optimizer.weight_decay=0"),
        },
    ),
    "movies-attention": Faults(
        "movie-reviews",
        (
            "model.encoder.mixers=attention",
            "model.encoder.embedding_width=256",
            "model.encoder.feedforward=mlp",
            "model.encoder.norm=layer",
            "model.encoder.residual=true",
            "model.encoder.positions.kind=rotary",
        ),
        {"initialization": ("model.initialization=1",)},
    ),
    "fashion": Faults(
        "fashion-mnist",
        (),
        {
            "rate": ("optimizer.lr=10",),
            "initialization": ("model.initialization=1",),
            "regularization": ("optimizer.weight_decay=0", "data.augment.crop=none"),
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


def tuned(subject: str, kind: str, runs: Path, budget: str) -> dict[str, Any]:
    """Return what a study says, which is made if there is none."""
    folder = runs / f"{subject}-{kind}"
    settings = SUBJECTS[subject].planted.get(kind, ())
    if not (folder / "report.json").exists():
        run_foveal(folder, "tune", *data_of(subject), *settings, "--budget", budget)
    result: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return result


def data_of(subject: str) -> list[str]:
    """Return the data, by path if FOVEAL_DATA has them, else by name, and the options."""
    data, options = SUBJECTS[subject].data, SUBJECTS[subject].options
    file = Path(os.environ["FOVEAL_DATA"], data)
    return [str(file) if file.exists() else data, *options]


def config_of(command: list[str]) -> list[str]:
    """Return the config of a training, but for its patience: the best weights are kept with any.

    Raises: CalledProcessError: the command is refused.
    """
    words = [sys.executable, "-m", "foveal", *command, "--print-config"]
    lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in lines if not line.startswith("patience = ")]


def loss(command: list[str], seed: int, folder: Path) -> float:
    """Return the test loss of a training, which is made if there is none."""
    file = folder.with_name(f"{folder.name}.json")
    if not file.exists():
        file.write_text(json.dumps(run_foveal(folder, *command, f"training.seed={seed}")))
    return float(json.loads(file.read_text())["loss"])


def compare(subject: str, kind: str, runs: Path, budget: str) -> Measurement:
    """Return the loss of the settings that a study recommends, over the preset's."""
    study = tuned(subject, kind, runs, budget)
    preset = ["train", *data_of(subject)]
    _, *recommended = study["command"]
    are_equal = config_of(recommended) == config_of(preset)
    own, by_preset = list[float](), list[float]()
    for seed in () if are_equal else range(SEEDS):
        by_preset.append(loss(preset, seed, runs / f"{subject}-by-preset-{seed}"))
        own.append(loss(recommended, seed, runs / f"{subject}-{kind}-recommended-{seed}"))
    value = 1.0 if are_equal else median(own) / median(by_preset)
    changed = " ".join(f"{key}={text}" for key, text in study["recommended"].items()) or "no changes"
    sides = (" ".join(f"{each:.4f}" for each in side) for side in (own, by_preset))
    trained = "the settings of the preset, so not trained apart" if are_equal else " over ".join(sides)
    notes = [study["verdict"], f"recommended: {changed}", trained]
    title = f"{subject}, {kind}: loss of the recommended settings over the preset's"
    print(f"{title}: {value:.4f}; {'; '.join(notes)}", file=sys.stderr, flush=True)
    return Measurement(title, value, FROM_PRESET if kind == PRESET else FROM_FAULT, True, notes)


def main() -> None:
    names = [f"{name}-{kind}" for name, faults in SUBJECTS.items() for kind in (*faults.planted, PRESET)]
    parser = option_parser(__doc__)
    parser.add_argument("--runs", type=Path, required=True, help="the folder of studies and trainings")
    parser.add_argument("--only", default=",".join(names), help="studies, with commas between them")
    options = parser.parse_args()
    if "FOVEAL_DATA" not in os.environ:
        parser.error("set FOVEAL_DATA to the folder of the data")
    options.runs.mkdir(parents=True, exist_ok=True)
    studies = names[:1] if options.quick else options.only.split(",")
    budget = QUICK_BUDGET if options.quick else BUDGET
    named = (name.rpartition("-") for name in studies)
    report([compare(subject, kind, options.runs, budget) for subject, _, kind in named], options)


if __name__ == "__main__":
    main()
