"""Train every language model's preset for three minutes on tiny Shakespeare; write docs/presets.md.

    FOVEAL_DATA=folder python -m benchmarks.presets                      # those not trained yet
    FOVEAL_DATA=folder python -m benchmarks.presets --only lstm,gru      # these, anew

Runs are kept in --runs; the page and its picture are made from all that are there, so it can be stopped and
started again. A preset that fails is said, and the others go on. The text is split as in benchmarks.demo.
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
from benchmarks.timing import ROOT, machine, watched
from foveal.config import preset_names
from foveal.inspection.curves import read_metrics_log
from foveal.tasks.config import load_config

MOMENTS = (0, 20, 60, 180)
WIDTH, LINES = 60, 9
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's, that colour-blind people can tell apart; its yellow is too light for a line."""
STYLES = ("-", "--", ":")


def foveal() -> str:
    return str(Path(sys.executable).with_name("foveal"))


def command(name: str, budget: str) -> list[str]:
    given = ["--valid", "valid.txt", "--model", name, "--run", name, "--budget", budget, "--json"]
    return ["train", "train.txt", *given]


def train(name: str, runs: Path, budget: str) -> bool:
    """Run the command in `runs` and keep its result beside the run; False, and why, if it fails."""
    shutil.rmtree(runs / name, ignore_errors=True)
    (runs / f"{name}.json").unlink(missing_ok=True)
    with watched() as watch:
        done = subprocess.run([foveal(), *command(name, budget)], cwd=runs, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        print(
            f"{name}: `foveal {' '.join(command(name, budget))}` failed: {done.returncode}", file=sys.stderr
        )
        return False
    circumstances = {"wall": watch.seconds, "foreign": watch.foreign, "dirty": watch.dirty, **machine()}
    (runs / f"{name}.json").write_text(json.dumps(json.loads(done.stdout) | circumstances))
    return True


class Trained:
    """A finished run: the result, and what was logged by seconds of training."""

    def __init__(self, name: str, runs: Path):
        self.name, self.run = name, runs / name
        self.result: dict[str, Any] = json.loads((runs / f"{name}.json").read_text())
        steps = read_metrics_log(self.run / "metrics.jsonl", "step")
        self.tokens = steps[-1]["tokens"]
        self.seconds = {0: 0.0} | {record["step"]: record["seconds"] for record in steps}
        evaluations = read_metrics_log(self.run / "metrics.jsonl", "evaluation")
        self.curve = [(self.seconds[record["step"]], record["loss"]) for record in evaluations]

    def sample(self, moment: float) -> tuple[int, str]:
        """The step and the text of the sample nearest to the moment, by the ratio of times."""
        lines = (self.run / "samples.jsonl").read_text(encoding="utf-8").splitlines()
        texts = {record["step"]: record["text"] for record in map(json.loads, lines)}
        near = {step: abs(math.log((self.seconds[step] + 1e-3) / (moment + 1e-3))) for step in texts}
        step = min(near, key=near.__getitem__)
        return step, texts[step]


def row(one: Trained, facts: dict[str, Any]) -> str:
    result = one.result
    cells = [
        f"[{one.name}](#{one.name})",
        f"{facts['layers']} x {facts['mixers']}",
        f"{facts['parameters']:,}",
        f"{one.tokens / result['seconds']:,.0f}",
        f"{result['steps']:,}",
        f"{result['loss']:.3f}",
        f"{result['bits_per_character']:.3f}",
    ]
    return f"| {' | '.join(cells)} |"


def cell(one: Trained, moment: float) -> str:
    step, text = one.sample(moment)
    lines = [part for line in text.splitlines() for part in textwrap.wrap(line, WIDTH) or [""]][:LINES]
    # An empty line would end the table: to Markdown it is the end of the HTML.
    shown = "\n".join(html.escape(line, quote=False) or "&nbsp;" for line in lines)
    return f"<td>{one.seconds[step]:.0f} s, step {step:,}\n<pre>\n{shown}\n</pre></td>"


def samples(one: Trained) -> str:
    cells = [cell(one, moment) for moment in MOMENTS]
    pairs = zip(cells[::2], cells[1::2], strict=True)
    rows = "\n".join(f'<tr valign="top">\n{left}\n{right}\n</tr>' for left, right in pairs)
    return f"## {one.name}\n\n<table>\n{rows}\n</table>\n"


def page(every: list[Trained]) -> str:
    told = subprocess.run([foveal(), "models", "--json"], stdout=subprocess.PIPE, check=True)
    presets = json.loads(told.stdout)
    worst = max(every, key=lambda one: one.result["foreign"])
    facts = worst.result
    dirty = ", ".join(one.name for one in every if one.result["dirty"])
    return f"""# Presets after three minutes

Every language model's preset, unchanged, on tiny Shakespeare (the first 90 % of the text for training, the
last 10 % held out):

    foveal train train.txt --valid valid.txt --model lstm --budget 3m

Nats and bits are per character, for the best weights on the held-out text. Steps and tokens/s count only
training.

| preset | mixers | parameters | tokens/s | steps | held-out nats | bits |
|---|---|---|---|---|---|---|
{chr(10).join(row(one, presets[one.name]) for one in every)}

![Held-out loss of every preset against seconds of training](pictures/presets.png)

Measured on {facts["cpu"]}, {facts["cores"]} cores, torch {facts["torch"]}, commit {facts["commit"]}, by
`python -m benchmarks.presets`, one after the other. CPU time of other programs meanwhile: at most
{facts["foreign"]:.1f} s in {facts["wall"]:.0f} s ({worst.name}){f"; too much in: {dirty}" if dirty else ""}.
The presets differ in more than the mixer (width, optimizer, precision), so this is not a comparison of mixers
on equal terms.

Below are samples after about 0, 20, 60 and 180 seconds of training, always with the same random numbers.

{chr(10).join(samples(one) for one in every)}"""


def draw(every: list[Trained], path: Path) -> None:
    """Held-out loss against seconds of training, the legend in the order of the curves' ends."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.6, 5), layout="constrained")
    axes = figure.subplots()
    for number, one in enumerate(sorted(every, key=lambda one: one.curve[-1][1], reverse=True)):
        axes.plot(
            *zip(*one.curve, strict=True),
            STYLES[number // len(COLOURS)],
            color=COLOURS[number % len(COLOURS)],
            marker="osD^v"[number % 5],
            markersize=4,
            linewidth=1.6,
            label=f"{one.curve[-1][1]:.3f}  {one.name}",
        )
    ticks = [1, 2, 5, 10, 20, 60, 180]
    axes.set_xscale("log")
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    lowest = min(loss for one in every for _, loss in one.curve)
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
    parser.add_argument("--only", metavar="A,B", help="train these anew")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "presets", help="where runs are kept")
    parser.add_argument(
        "--quick", action="store_true", help="smoke test: 2 steps each, the page beside the runs"
    )
    given = parser.parse_args()
    if given.quick and given.runs == parser.get_default("runs"):
        given.runs = Path(tempfile.mkdtemp(prefix="presets-"))
    runs = given.runs
    names = [name for name in preset_names() if load_config(name).task.name == "language-model"]
    runs.mkdir(parents=True, exist_ok=True)
    split(runs)
    chosen = given.only.split(",") if given.only else [n for n in names if not (runs / f"{n}.json").exists()]
    if unknown := set(chosen) - set(names):
        parser.error(f"no presets: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    failed = [name for name in chosen if not train(name, runs, "2steps" if given.quick else "3m")]

    every = [Trained(name, runs) for name in names if (runs / f"{name}.json").exists()]
    every.sort(key=lambda one: one.result["loss"])
    docs = runs if given.quick else ROOT / "docs"
    if every:
        draw(every, docs / "pictures" / "presets.png")
        (docs / "presets.md").write_text(page(every), encoding="utf-8")
        print(f"{docs / 'presets.md'}: {len(every)} of {len(names)} presets")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
