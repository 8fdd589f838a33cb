"""Plain networks of 20 and 56 layers and a residual network of 56 layers on CIFAR-10.

    FOVEAL_DATA=folder python -m benchmarks.depth            # trains the networks that have no result yet
    FOVEAL_DATA=folder python -m benchmarks.depth --page     # writes only the page and its plot

Runs `foveal train` on cifar10.zip for five epochs per network. Results are stored in --runs, so a stopped
script continues. Writes docs/depth.md and its plot.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.timing import ROOT, machine
from foveal.inspection.curves.compute import smooth
from foveal.inspection.curves.log_records import read_metrics_log

NETWORKS = {"plain-20": "#0072B2", "plain-56": "#E69F00", "resnet-56": "#009E73"}
"""The networks with their colors in the plot."""
BUDGET, EPOCHS = "5epochs", 5


def command(name: str, budget: str) -> list[str]:
    """Return the command that trains a network."""
    options = [f"model.encoder.network={name}", "--budget", budget, "--run", name, "--json"]
    return ["foveal", "train", "cifar10.zip", *options]


def train(name: str, data: Path, runs: Path, budget: str) -> None:
    """Run the command in the folder `runs`, and write its result there."""
    runs.mkdir(parents=True, exist_ok=True)
    arguments = [
        str(Path(sys.executable).with_name("foveal")),
        "train",
        str(data),
        *command(name, budget)[3:],
    ]
    done = subprocess.run(arguments, cwd=runs, stdout=subprocess.PIPE, text=True, check=True)
    (runs / f"{name}.json").write_text(json.dumps(json.loads(done.stdout) | machine()))


def losses(name: str, runs: Path) -> tuple[list[float], list[float]]:
    """Return the epochs of all steps, and the smoothed training loss there."""
    steps = read_metrics_log(runs / name / "metrics.jsonl")["step"]
    return [step["epoch"] for step in steps], smooth([step["loss"] for step in steps])


def last_epoch_loss(name: str, runs: Path) -> float:
    """Return the mean training loss of the last epoch."""
    steps = read_metrics_log(runs / name / "metrics.jsonl")["step"]
    last_losses = [step["loss"] for step in steps if step["epoch"] > steps[-1]["epoch"] - 1]
    return sum(last_losses) / len(last_losses)


def plot(results: dict[str, dict[str, Any]], runs: Path, path: Path) -> None:
    """Plot the training losses over the epochs."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for name in results:
        axes.plot(*losses(name, runs), color=NETWORKS[name], label=name)
    axes.set_xlabel("epochs")
    axes.set_ylabel("training loss in nats per image")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def page(results: dict[str, dict[str, Any]], runs: Path) -> str:
    """Return the page docs/depth.md."""
    lines = [
        f"| `{name}` | {last_epoch_loss(name, runs):.3f} | {result['loss']:.3f} "
        f"| {100 * result['accuracy']:.1f} % |"
        for name, result in results.items()
    ]
    table = "\n".join(
        ["| network | training loss, last epoch | test loss | test accuracy |", "|---|---|---|---|", *lines]
    )
    commands = "\n".join(f"    {' '.join(command(name, BUDGET)[:-1])}" for name in NETWORKS)
    facts = next(iter(results.values()))
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
    parser.add_argument("--page", action="store_true", help="train nothing")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "depth", help="folder of the runs")
    parser.add_argument(
        "--quick", action="store_true", help="smoke test: 2 steps each; the page is written to --runs"
    )
    options = parser.parse_args()
    if not options.page and "FOVEAL_DATA" not in os.environ:
        parser.error("set FOVEAL_DATA to the folder that holds cifar10.zip")
    for name in () if options.page else NETWORKS:
        if not (options.runs / f"{name}.json").exists():
            train(
                name,
                Path(os.environ["FOVEAL_DATA"], "cifar10.zip"),
                options.runs,
                "2steps" if options.quick else BUDGET,
            )
    paths = {name: options.runs / f"{name}.json" for name in NETWORKS}
    results = {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}
    if results:
        docs = options.runs if options.quick else ROOT / "docs"
        plot(results, options.runs, docs / "pictures" / "depth.png")
        (docs / "depth.md").write_text(page(results, options.runs), encoding="utf-8")


if __name__ == "__main__":
    main()
