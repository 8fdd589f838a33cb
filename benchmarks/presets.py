"""Train the preset of every language model for three minutes on tiny Shakespeare, and write docs/presets.md.

    FOVEAL_DATA=folder python -m benchmarks.presets                      # presets that have no run yet
    FOVEAL_DATA=folder python -m benchmarks.presets --only lstm,gru      # these presets again

Runs are stored in --runs, so a stopped script continues. The page and its plot show all runs there. A preset
that fails is reported, and the others continue. The text is split as in benchmarks.demo.
"""

import argparse
import html
import json
import math
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

from benchmarks.demo import split
from benchmarks.timing import ROOT, machine, timed
from foveal.inspection.curves.log_records import read_metrics_log
from foveal.tasks.config import load_config
from tests.support.trained_presets import trained_presets

SAMPLE_SECONDS = (0, 20, 60, 180)
"""Seconds of training after which a sample is shown."""
SAMPLE_WIDTH, SAMPLE_LINES = 60, 9
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""The colors of Okabe and Ito, which color-blind people can tell apart. Yellow is left out: too light."""
LINE_STYLES = ("-", "--", ":")


def foveal() -> str:
    """Return the path of the command `foveal`."""
    return str(Path(sys.executable).with_name("foveal"))


def command(name: str, budget: str) -> list[str]:
    """Return the arguments of `foveal` that train a preset."""
    options = ["--valid", "valid.txt", "--model", name, "--run", name, "--budget", budget, "--json"]
    return ["train", "train.txt", *options]


def train(name: str, runs: Path, budget: str) -> bool:
    """Run the command in the folder `runs`, and write its result there. Return False if the command fails."""
    shutil.rmtree(runs / name, ignore_errors=True)
    (runs / f"{name}.json").unlink(missing_ok=True)
    with timed() as block:
        done = subprocess.run([foveal(), *command(name, budget)], cwd=runs, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        print(
            f"{name}: `foveal {' '.join(command(name, budget))}` failed: {done.returncode}", file=sys.stderr
        )
        return False
    circumstances = {"wall": block.seconds, "foreign": block.foreign, "dirty": block.dirty, **machine()}
    (runs / f"{name}.json").write_text(json.dumps(json.loads(done.stdout) | circumstances))
    return True


class FinishedRun:
    """A finished run: its result, and its log by seconds of training."""

    def __init__(self, name: str, runs: Path):
        self.name, self.folder = name, runs / name
        self.result: dict[str, Any] = json.loads((runs / f"{name}.json").read_text())
        steps = read_metrics_log(self.folder / "metrics.jsonl")["step"]
        self.tokens = steps[-1]["tokens"]
        self.seconds = {0: 0.0} | {record["step"]: record["seconds"] for record in steps}
        evaluations = read_metrics_log(self.folder / "metrics.jsonl")["evaluation"]
        self.curve = [(self.seconds[record["step"]], record["loss"]) for record in evaluations]

    def sample(self, seconds: float) -> tuple[int, str]:
        """Return step and text of the sample nearest to `seconds` of training, by the ratio of times."""
        lines = (self.folder / "samples.jsonl").read_text(encoding="utf-8").splitlines()
        texts = {record["step"]: record["text"] for record in map(json.loads, lines)}
        distances = {step: abs(math.log((self.seconds[step] + 1e-3) / (seconds + 1e-3))) for step in texts}
        step = min(distances, key=distances.__getitem__)
        return step, texts[step]


def row(run: FinishedRun, facts: dict[str, Any]) -> str:
    """Return a run's row of the table."""
    result = run.result
    cells = [
        f"[{run.name}](#{run.name})",
        f"{facts['layers']} x {facts['mixers']}",
        f"{facts['parameters']:,}",
        f"{run.tokens / result['seconds']:,.0f}",
        f"{result['steps']:,}",
        f"{result['loss']:.3f}",
        f"{result['bits_per_character']:.3f}",
    ]
    return f"| {' | '.join(cells)} |"


def cell(run: FinishedRun, seconds: float) -> str:
    """Return the sample nearest to `seconds` of training as a cell of a table."""
    step, text = run.sample(seconds)
    lines = [part for line in text.splitlines() for part in textwrap.wrap(line, SAMPLE_WIDTH) or [""]]
    # In Markdown, an empty line ends the HTML, so it would end the table.
    escaped = "\n".join(html.escape(line, quote=False) or "&nbsp;" for line in lines[:SAMPLE_LINES])
    return f"<td>{run.seconds[step]:.0f} s, step {step:,}\n<pre>\n{escaped}\n</pre></td>"


def samples(run: FinishedRun) -> str:
    """Return the section with a run's samples."""
    cells = [cell(run, seconds) for seconds in SAMPLE_SECONDS]
    pairs = zip(cells[::2], cells[1::2], strict=True)
    rows = "\n".join(f'<tr valign="top">\n{left}\n{right}\n</tr>' for left, right in pairs)
    return f"## {run.name}\n\n<table>\n{rows}\n</table>\n"


def page(runs: list[FinishedRun]) -> str:
    """Return the page docs/presets.md."""
    described = subprocess.run([foveal(), "models", "--json"], stdout=subprocess.PIPE, check=True)
    presets = json.loads(described.stdout)
    worst = max(runs, key=lambda run: run.result["foreign"])
    facts = worst.result
    dirty = ", ".join(run.name for run in runs if run.result["dirty"])
    return f"""# Presets after three minutes

Every language model's preset, unchanged, on tiny Shakespeare (the first 90 % of the text for training, the
last 10 % held out):

    foveal train train.txt --valid valid.txt --model lstm --budget 3m

Nats and bits are per character, for the best weights on the held-out text. Steps and tokens/s count only
training.

| preset | mixers | parameters | tokens/s | steps | held-out nats | bits |
|---|---|---|---|---|---|---|
{chr(10).join(row(run, presets[run.name]) for run in runs)}

![Held-out loss of every preset against seconds of training](pictures/presets.png)

Measured on {facts["cpu"]}, {facts["cores"]} cores, torch {facts["torch"]}, commit {facts["commit"]}, by
`python -m benchmarks.presets`, one after the other. CPU time of other programs meanwhile: at most
{facts["foreign"]:.1f} s in {facts["wall"]:.0f} s ({worst.name}){f"; too much in: {dirty}" if dirty else ""}.
The presets differ in more than the mixer (width, optimizer, precision), so this is not a comparison of mixers
on equal terms.

Below are samples after about 0, 20, 60 and 180 seconds of training, always with the same random numbers.

{chr(10).join(samples(run) for run in runs)}"""


def plot(runs: list[FinishedRun], path: Path) -> None:
    """Plot the held-out loss against seconds of training. The legend is in the order of the last losses."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.6, 5), layout="constrained")
    axes = figure.subplots()
    for number, run in enumerate(sorted(runs, key=lambda run: run.curve[-1][1], reverse=True)):
        axes.plot(
            *zip(*run.curve, strict=True),
            LINE_STYLES[number // len(COLORS)],
            color=COLORS[number % len(COLORS)],
            marker="osD^v"[number % 5],
            markersize=4,
            linewidth=1.6,
            label=f"{run.curve[-1][1]:.3f}  {run.name}",
        )
    ticks = [1, 2, 5, 10, 20, 60, 180]
    axes.set_xscale("log")
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    lowest = min(loss for run in runs for _, loss in run.curve)
    axes.set_xlim(1, 200)
    axes.set_ylim(lowest - 0.1, max(3.6, lowest + 0.5))
    axes.set_xlabel("seconds of training")
    axes.set_ylabel("held-out loss, nats per character")
    axes.grid(alpha=0.25)
    figure.legend(loc="outside right center", frameon=False, title="last loss")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", metavar="A,B", help="train these presets again")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "presets", help="folder of the runs")
    parser.add_argument(
        "--quick", action="store_true", help="smoke test: 2 steps each; the page is written to --runs"
    )
    options = parser.parse_args()
    if options.quick and options.runs == parser.get_default("runs"):
        options.runs = Path(tempfile.mkdtemp(prefix="presets-"))
    runs = options.runs
    names = [name for name in trained_presets() if load_config(name).task.name == "language-model"]
    runs.mkdir(parents=True, exist_ok=True)
    split(runs)
    chosen = (
        options.only.split(",") if options.only else [n for n in names if not (runs / f"{n}.json").exists()]
    )
    if unknown := set(chosen) - set(names):
        parser.error(f"unknown presets: {', '.join(sorted(unknown))}; choose among {', '.join(names)}")
    failed = [name for name in chosen if not train(name, runs, "2steps" if options.quick else "3m")]

    finished = [FinishedRun(name, runs) for name in names if (runs / f"{name}.json").exists()]
    finished.sort(key=lambda run: run.result["loss"])
    docs = runs if options.quick else ROOT / "docs"
    if finished:
        plot(finished, docs / "pictures" / "presets.png")
        (docs / "presets.md").write_text(page(finished), encoding="utf-8")
        print(f"{docs / 'presets.md'}: {len(finished)} of {len(names)} presets")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
