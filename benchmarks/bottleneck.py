"""How much one vector holds: models with and without attention copy and reverse strings.

    python -m benchmarks.bottleneck                      # trains the models that have no result yet
    python -m benchmarks.bottleneck --only gru,mamba     # trains these models again
    python -m benchmarks.bottleneck --page               # writes only the page and its plot

Runs `foveal train` on the data sets copy and reverse: strings of 1 to 200 letters for training, of 20 to
1,000 for the test. Results are stored in --runs, so a stopped script continues. Writes docs/bottleneck.md and
its plot.
"""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.timing import ROOT, machine
from foveal.data.datasets.synthetic_strings import MAX_TRAIN_LETTERS, TEST_LENGTHS

TASKS = ("copy", "reverse")
BUDGET = "2epochs"
SHARED_SETTINGS = (
    "data.tokenizer=word data.max_length=1100 data.batch_tokens=4096 model.dropout=0 model.encoder.dropout=0"
)
RECURRENT = f"--model transduction {SHARED_SETTINGS}"
STACK = (
    f"--model translation {SHARED_SETTINGS} model.layers=2 model.encoder.layers=2 task.name=transduction "
    "task.label_smoothing=0 training.ema_decay=0"
)
SSM = "model.mixers=mamba+cross model.encoder.mixers=mamba model.encoder.bidirectional=true"


def positions(kind: str) -> str:
    """Return the settings for one kind of positions in encoder and decoder."""
    return f"model.positions.kind={kind} model.encoder.positions.kind={kind}"


MODELS = {
    "gru": ("GRU, one vector", f"{RECURRENT} model.attention_rnn.score=every-step"),
    "gru-additive": ("GRU, additive attention", RECURRENT),
    "transformer": ("Transformer, rotary positions", f"{STACK} {positions('rotary')}"),
    "mamba": ("Mamba, cross-attention", f"{STACK} {positions('none')} {SSM}"),
}
"""The title and the options of each model."""
COLORS = ("#E69F00", "#0072B2", "#009E73", "#CC79A7")
RESULTS = """Results:

* **One vector is too narrow for 20 letters.** Through one vector the GRU writes no string correctly: somewhat
  more than half of the letters at 20, about a quarter at 50, and beyond that hardly more than chance.
* **Attention removes the bottleneck.** The same GRU, with the same width and training, plus additive
  attention, copies and reverses every string of up to 50 letters, and nine in ten of those of 200. The
  Transformer and Mamba with cross-attention come close to that, or exceed it.
* **Beyond the training lengths the models differ.** At 400 letters, twice the longest string of training,
  Mamba copies 92 % and reverses 86 %. The GRU with attention copies 60 %, but reverses none. The
  Transformer, nearly perfect at 200, writes none of 400.
* **At 1,000 letters** only Mamba writes any string correctly: 24 % reversed and none copied. Attention widens
  the bottleneck, but the models learn to go through a source letter by letter only for lengths not far above
  those of training.
"""


def command(name: str, task: str, budget: str) -> list[str]:
    """Return the command that trains a model on a task."""
    options = ["--run", f"{task}-{name}", "--budget", budget, "--json"]
    return ["foveal", "train", task, *MODELS[name][1].split(), *options]


def train(name: str, task: str, runs: Path, budget: str) -> None:
    """Run the command in the folder `runs`, and write its result there."""
    runs.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(runs / f"{task}-{name}", ignore_errors=True)
    arguments = [str(Path(sys.executable).with_name("foveal")), *command(name, task, budget)[1:]]
    done = subprocess.run(arguments, cwd=runs, stdout=subprocess.PIPE, text=True, check=True)
    (runs / f"{task}-{name}.json").write_text(json.dumps(json.loads(done.stdout) | machine()))


def correct(result: dict[str, Any]) -> list[tuple[float, float]]:
    """Return the percentages of correct strings and letters for each test length."""
    parts = sorted(result["by_length"], key=lambda part: part["longest"])
    return [(100 * part["exact"], 100 * max(0.0, 1 - part["wer"])) for part in parts]


def table(task: str, results: dict[str, dict[str, Any]]) -> str:
    """Return the table of a task in Markdown."""
    head = " | ".join([f"| {task}", *(f"{n:,}" for n in TEST_LENGTHS)])
    lines = [f"{head} |", "|---|" + "---|" * len(TEST_LENGTHS)]
    for name, (title, _) in MODELS.items():
        if (result := results.get(f"{task}-{name}")) is not None:
            cells = [f"{strings:.0f} ({letters:.0f})" for strings, letters in correct(result)]
            lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def plot(results: dict[str, dict[str, Any]], path: Path) -> None:
    """Plot the share of correct letters against the length, one panel for each task."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 4), layout="constrained")
    panels = figure.subplots(1, len(TASKS), sharey=True)
    for axes, task in zip(panels, TASKS, strict=True):
        for number, (name, (title, _)) in enumerate(MODELS.items()):
            if (result := results.get(f"{task}-{name}")) is not None:
                letters = [share for _, share in correct(result)]
                axes.plot(
                    TEST_LENGTHS, letters, color=COLORS[number], marker="osD^v"[number % 5], label=title
                )
        axes.axvspan(TEST_LENGTHS[0], MAX_TRAIN_LETTERS, color="#EEEEEE")
        axes.set_xscale("log")
        axes.set_xticks(TEST_LENGTHS, [str(n) for n in TEST_LENGTHS], rotation=45)
        axes.minorticks_off()
        axes.set_title(task)
        axes.set_xlabel("letters (grey: as long as in training)")
        axes.grid(alpha=0.25)
    panels[0].set_ylabel("right letters, per cent (100 - error rate)")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def page(results: dict[str, dict[str, Any]]) -> str:
    """Return the page docs/bottleneck.md."""
    letters = MAX_TRAIN_LETTERS
    facts = next(iter(results.values()))
    tables = "\n".join(f"{table(task, results)}\n" for task in TASKS)
    commands = "\n".join(f"    {' '.join(command(name, 'copy', BUDGET)[:-1])}" for name in MODELS)
    return f"""# The bottleneck

A recurrent encoder and decoder without attention pass a whole source through one vector (Sutskever et al.
2014; Cho et al. 2014). Attention lets each step look at all vectors of the source instead (Bahdanau et al.
2015). Copying and reversing strings of ten different letters shows how much one vector holds: such strings
can't be compressed.

Every model has width 128 and trains for two epochs on 50,000 strings of 1 to {letters} letters, as many of
10 to 20 letters as of 100 to 200: five million letters, 2,502 steps. Then it writes 50 test strings of each
length with a beam of 5; those of more than {letters} letters are longer than any string of training. The
tables show the percentage of strings with every letter correct and, in parentheses, of correct letters (100
minus the error rate):

{tables}
![Percentage of correct letters against the length of the string](pictures/bottleneck.png)

{RESULTS}
## The commands

`python -m benchmarks.bottleneck` runs them and writes this page. For reversing, replace `copy` by `reverse`:

{commands}

On {facts["cpu"]}, torch {facts["torch"]}. One run of each, with seed 0; another seed gives slightly
different results. `data.max_length` is raised because it limits what such a model reads.
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", metavar="A,B", help="train these models again")
    parser.add_argument("--task", choices=TASKS, help="train on this task alone")
    parser.add_argument("--page", action="store_true", help="train nothing")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "bottleneck", help="folder of the runs")
    parser.add_argument(
        "--quick", action="store_true", help="smoke test: 2 steps each; the page is written to --runs"
    )
    options = parser.parse_args()
    runs = options.runs
    if unknown := set((options.only or "gru").split(",")) - set(MODELS):
        parser.error(f"unknown models: {', '.join(sorted(unknown))}; choose among {', '.join(MODELS)}")
    for task in () if options.page else (options.task,) if options.task else TASKS:
        for name in options.only.split(",") if options.only else MODELS:
            if options.only or not (runs / f"{task}-{name}.json").exists():
                train(name, task, runs, "2steps" if options.quick else BUDGET)
    names = [f"{task}-{name}" for task in TASKS for name in MODELS]
    results = {
        name: json.loads((runs / f"{name}.json").read_text())
        for name in names
        if (runs / f"{name}.json").exists()
    }
    if results:
        docs = runs if options.quick else ROOT / "docs"
        plot(results, docs / "pictures" / "bottleneck.png")
        (docs / "bottleneck.md").write_text(page(results), encoding="utf-8")


if __name__ == "__main__":
    main()
