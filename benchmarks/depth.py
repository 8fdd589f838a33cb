"""Deeper is not better by itself: plain networks of 20 and 56 layers, and a residual one of 56, on CIFAR-10.

    FOVEAL_DATA=folder python -m benchmarks.depth            # those not trained yet
    FOVEAL_DATA=folder python -m benchmarks.depth --page     # the page and its picture alone

Trains by the command on cifar10.zip for five epochs each. Results are kept in --runs, so it can be stopped
and started again. Writes docs/depth.md and its picture.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.timing import ROOT, machine
from foveal.inspection.curves import read_metrics_log, smooth

NETWORKS = {"plain-20": "#0072B2", "plain-56": "#E69F00", "resnet-56": "#009E73"}
BUDGET, EPOCHS = "5epochs", 5


def command(name: str, budget: str) -> list[str]:
    given = [f"model.encoder.network={name}", "--budget", budget, "--run", name, "--json"]
    return ["foveal", "train", "cifar10.zip", *given]


def train(name: str, data: Path, runs: Path, budget: str) -> None:
    """Run the command in `runs`; keep its result."""
    runs.mkdir(parents=True, exist_ok=True)
    called = [str(Path(sys.executable).with_name("foveal")), "train", str(data), *command(name, budget)[3:]]
    done = subprocess.run(called, cwd=runs, stdout=subprocess.PIPE, text=True, check=True)
    (runs / f"{name}.json").write_text(json.dumps(json.loads(done.stdout) | machine()))


def losses(name: str, runs: Path) -> tuple[list[float], list[float]]:
    """Epochs, and the training loss there, smoothed."""
    steps = read_metrics_log(runs / name / "metrics.jsonl", "step")
    return [step["epoch"] for step in steps], smooth([step["loss"] for step in steps])


def last(name: str, runs: Path) -> float:
    """The mean training loss of the last epoch."""
    steps = read_metrics_log(runs / name / "metrics.jsonl", "step")
    found = [step["loss"] for step in steps if step["epoch"] > steps[-1]["epoch"] - 1]
    return sum(found) / len(found)


def draw(every: dict[str, dict[str, Any]], runs: Path, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for name in every:
        axes.plot(*losses(name, runs), color=NETWORKS[name], label=name)
    axes.set_xlabel("epochs")
    axes.set_ylabel("training loss in nats per image")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def page(every: dict[str, dict[str, Any]], runs: Path) -> str:
    lines = [
        f"| `{name}` | {last(name, runs):.3f} | {result['loss']:.3f} | {100 * result['accuracy']:.1f} % |"
        for name, result in every.items()
    ]
    table = "\n".join(
        ["| network | training loss, last epoch | test loss | test accuracy |", "|---|---|---|---|", *lines]
    )
    commands = "\n".join(f"    {' '.join(command(name, BUDGET)[:-1])}" for name in NETWORKS)
    facts = next(iter(every.values()))
    return f"""# Depth, with and without shortcuts

    y = relu(F(x))          a block of a plain network
    y = relu(F(x) + x)      a block of a residual network, with as many weights (He et al. 2015, eq. 1)

A deeper plain network could copy a shallower one and let its other layers compute the identity, so its
training loss should be no worse. It is worse: gradient descent does not find those weights. This is not
overfitting, because the training loss is higher. Vanishing signals are unlikely, because a batch norm follows
each convolution (4.1). A block with a shortcut only has to learn a change, and no change is easy: all weights
zero.

{table}

![Training loss of three networks over {EPOCHS} epochs](pictures/depth.png)

CIFAR-10, {EPOCHS} epochs each with the settings of the preset `image-classification`: momentum, a learning
rate of 0.1 that falls to zero, shifts and flips. He et al. 2015 show the same after 164 epochs (figure 6).

`python -m benchmarks.depth` runs the commands and writes this page. FOVEAL_DATA names a folder with
[cifar10.zip](../benchmarks/README.md#data):

{commands}

On {facts["cpu"]}, torch {facts["torch"]}.

**Caveats.** One run of each, with seed 0. All use the learning rate of `image-classification`; another may
suit a plain network better. {EPOCHS} epochs are few: a network that starts more slowly would look the same.
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--page", action="store_true", help="train none")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "depth", help="where runs are kept")
    parser.add_argument(
        "--quick", action="store_true", help="smoke test: 2 steps each, the page beside the runs"
    )
    given = parser.parse_args()
    if not given.page and "FOVEAL_DATA" not in os.environ:
        parser.error("set FOVEAL_DATA to the folder that holds cifar10.zip")
    for name in () if given.page else NETWORKS:
        if not (given.runs / f"{name}.json").exists():
            train(
                name,
                Path(os.environ["FOVEAL_DATA"], "cifar10.zip"),
                given.runs,
                "2steps" if given.quick else BUDGET,
            )
    kept = {name: given.runs / f"{name}.json" for name in NETWORKS}
    every = {name: json.loads(path.read_text()) for name, path in kept.items() if path.exists()}
    if every:
        docs = given.runs if given.quick else ROOT / "docs"
        draw(every, given.runs, docs / "pictures" / "depth.png")
        (docs / "depth.md").write_text(page(every, given.runs), encoding="utf-8")


if __name__ == "__main__":
    main()
