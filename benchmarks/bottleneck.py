"""What one vector can hold: strings to copy and to reverse, by models that attend and models that don't.

    python -m benchmarks.bottleneck                      # those not trained yet
    python -m benchmarks.bottleneck --only gru,mamba     # these, anew
    python -m benchmarks.bottleneck --page               # the page and its picture alone

Trains by the command on the strings of at most 50 letters of the data sets copy and reverse, and lets each
model write the test strings of 20 to 1,000. Runs are kept in --runs, so it can be stopped and started again.
Writes docs/bottleneck.md and its picture.
"""

import argparse
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.timing import ROOT, machine
from foveal.build import kind_of, load
from foveal.data import catalogue
from foveal.data.buckets import HeldOutExamples
from foveal.data.generated import TESTED
from foveal.data.room import Room
from foveal.scores.recognition import cer, exact

TASKS = ("copy", "reverse")
TRAINED, STRINGS = 50, 20
"""Letters of the longest string to train on; strings of each length to be written."""
BUDGET = "300ktokens"
LONGEST = 1100
SAME = f"data.tokenizer=word data.longest={LONGEST} model.dropout=0 model.encoder.dropout=0"
RECURRENT = f"--model transduce {SAME}"
STACK = (
    f"--model translate {SAME} data.batch_tokens=1024 model.width=128 model.encoder.width=128 model.layers=2 "
    "model.encoder.layers=2 task.name=transduce task.smoothing=0 training.average=0 optimizer.name=adamw "
    "optimizer.rate=1e-3"
)
ELMAN = "model.attentive.cell=rnn model.encoder.mixers=rnn"
SSM = "model.mixers=mamba+cross model.encoder.mixers=mamba model.encoder.bidirectional=true"


def positions(kind: str) -> str:
    return f"model.positions.kind={kind} model.encoder.positions.kind={kind}"


MODELS = {
    "rnn": ("vanilla RNN, one vector", f"{RECURRENT} {ELMAN} model.attentive.score=summary"),
    "gru": ("GRU, one vector", f"{RECURRENT} model.attentive.score=summary"),
    "rnn-additive": ("vanilla RNN, additive attention", f"{RECURRENT} {ELMAN}"),
    "gru-additive": ("GRU, additive attention", RECURRENT),
    "transformer-sinusoidal": ("Transformer, sinusoidal positions", STACK),
    "transformer-rotary": ("Transformer, rotary positions", f"{STACK} {positions('rotary')}"),
    "transformer-none": ("Transformer, no positions", f"{STACK} {positions('none')}"),
    "mamba": ("Mamba, cross-attention", f"{STACK} {positions('none')} {SSM}"),
}
COLOURS = ("#E69F00", "#D55E00", "#56B4E9", "#0072B2", "#009E73", "#CC79A7", "#999999", "#000000")
FOUND = """What it shows:

* **One vector is too narrow for 20 letters.** The GRU through one vector gets not one string right: half of
  the letters at 20, a third at 50. Its loss stays near 1.5 nats, where ln 11 = 2.4 is to know nothing. The
  vanilla network keeps hardly anything.
* **Attention is what lifts it.** The same GRU, as wide and trained as long, copies 80 % of the strings of 20
  letters and reverses all of them; of those of 50 it copies 5 % and reverses 25 %. With attention even the
  vanilla network copies 90 % and 45 %, though it reverses none.
* **Mamba with cross-attention** copies all of 20 letters and 70 % of 50, and is the only one with any right
  at 100, twice as long as it was trained on: 5 %, and 10 % reversed.
* **The Transformers have not learned it yet**, with any positions. Rotary ones come farthest. Without any the
  encoder gives the same for all orders of the letters, so the model can but guess. That says how slowly they
  learn this, not what they could learn.
* **From 200 letters on nothing is right**, in any model. At 1,000 letters 1 % to 21 % of them are, as of a
  guess. Attention widens the bottleneck, but how to go through a source letter by letter was learned for
  the lengths of training only.
"""


def write_data(runs: Path) -> None:
    """For each task a folder with train.tsv and valid.tsv, of short strings, and a table for each length."""
    for task in TASKS:
        folder, made = catalogue.get(task, print), runs / f"{task}-data"
        made.mkdir(parents=True, exist_ok=True)
        for part in ("train", "valid", "test"):
            header, *rows = (folder / f"{part}.tsv").read_text().splitlines()
            sized = [(len(row.partition("\t")[0].split()), row) for row in rows]
            if part == "test":
                chosen = {str(n): [row for size, row in sized if size == n][:STRINGS] for n in TESTED}
            else:
                chosen = {part: [row for size, row in sized if size <= TRAINED]}
            for name, kept in chosen.items():
                (made / f"{name}.tsv").write_text("\n".join([header, *kept, ""]))


def command(name: str, task: str, budget: str) -> list[str]:
    given = ["--run", f"{task}-{name}", "--budget", budget, "--json"]
    return ["foveal", "train", f"{task}-data", *MODELS[name][1].split(), *given]


def train(name: str, task: str, runs: Path, budget: str) -> None:
    """Run the command in `runs`; keep its result, and what the model writes at each length, beside it."""
    run = runs / f"{task}-{name}"
    shutil.rmtree(run, ignore_errors=True)
    called = [str(Path(sys.executable).with_name("foveal")), *command(name, task, budget)[1:]]
    done = subprocess.run(called, cwd=runs, stdout=subprocess.PIPE, text=True, check=True)
    lengths = {str(n): measure(run, runs / f"{task}-data" / f"{n}.tsv", n) for n in TESTED}
    result = {**json.loads(done.stdout), **machine(), "lengths": lengths}
    run.with_suffix(".json").write_text(json.dumps(result))


def measure(run: Path, table: Path, length: int) -> dict[str, float]:
    """The share of strings that are right in every letter, and of wrong letters, written greedily."""
    loaded = load(run)
    inputs = replace(loaded.inputs, room=Room(length + length // 5 + 1))
    kind = kind_of(loaded.config)
    data, _ = kind.prepare_held_out(loaded.config, str(table), inputs, print)
    work, outputs = kind.task(loaded.config, loaded.model, inputs), [""] * len(data)
    order = HeldOutExamples(data.examples, 2 * STRINGS * LONGEST)
    for index in range(order.per_epoch):
        batch = order.batch(0, index)
        for row, (found, *_) in zip(batch.rows.tolist(), work.write(batch), strict=True):
            outputs[row] = inputs.target.decode(work.spell(found)).strip()
    return {"exact": exact(data.targets, outputs).value, "cer": wrong_letters(data.targets, outputs)}


def wrong_letters(targets: list[str], outputs: list[str]) -> float:
    """Edits over letters, the spaces between them left out."""
    return cer([text.replace(" ", "") for text in targets], [text.replace(" ", "") for text in outputs]).value


def table(task: str, every: dict[str, dict[str, Any]]) -> str:
    head = " | ".join([f"| {task}", "held-out nats", *(f"{n:,}" for n in TESTED)])
    lines = [f"{head} |", "|---|---|" + "---|" * len(TESTED)]
    for name, (words, _) in MODELS.items():
        if (result := every.get(f"{task}-{name}")) is not None:
            cells = [f"{100 * result['lengths'][str(n)]['exact']:.0f}" for n in TESTED]
            lines.append(f"| {words} | {result['loss']:.3f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(every: dict[str, dict[str, Any]], picture: Path) -> None:
    """The share of right letters against the length, one panel a task."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 4), layout="constrained")
    panels = figure.subplots(1, len(TASKS), sharey=True)
    for axes, task in zip(panels, TASKS, strict=True):
        for number, (name, (words, _)) in enumerate(MODELS.items()):
            if (result := every.get(f"{task}-{name}")) is not None:
                right = [max(0.0, 1 - result["lengths"][str(n)]["cer"]) for n in TESTED]
                axes.plot(TESTED, right, color=COLOURS[number], marker="osD^v"[number % 5], label=words)
        axes.axvspan(TESTED[0], TRAINED, color="#EEEEEE")
        axes.set_xscale("log")
        axes.set_xticks(TESTED, [str(n) for n in TESTED], rotation=45)
        axes.minorticks_off()
        axes.set_title(task)
        axes.set_xlabel("letters (grey: as long as in training)")
        axes.grid(alpha=0.25)
    panels[0].set_ylabel("share of right letters (1 - CER)")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=130)


def page(every: dict[str, dict[str, Any]]) -> str:
    facts = next(iter(every.values()))
    amount = f"{int(BUDGET.removesuffix('ktokens')) * 1000:,}"
    tables = "\n".join(f"{table(task, every)}\n" for task in TASKS)
    commands = "\n".join(f"    {' '.join(command(name, 'copy', BUDGET)[:-1])}" for name in MODELS)
    return f"""# The bottleneck

A recurrent encoder and decoder without attention pass a whole source through one vector (Sutskever et al.
2014; Cho et al. 2014). Attention lets each step look at all vectors of the source instead (Bahdanau et al.
2015). Strings of ten different letters, to be copied or reversed, show what one vector holds: nothing in them
can be abbreviated.

Every model has width 128 and is trained on strings of 1 to {TRAINED} letters, {amount} letters in all: a
minute of one thread at most. Then it writes {STRINGS} test strings of each length, greedily. Those of more
than {TRAINED} letters are longer than any it was trained on. In per cent, how many are right in every letter:

{tables}
![Share of right letters against the length of the string](pictures/bottleneck.png)

{FOUND}
## The commands

`python -m benchmarks.bottleneck` takes the strings from the data sets `copy` and `reverse`, cuts them by
length, trains, lets the models write, and makes this page. For reversing, `reverse-data` in place of
`copy-data`:

{commands}

On {facts["cpu"]}, torch {facts["torch"]}. One run of each, with seed 0; another seed gives somewhat other
figures. `data.longest` is raised because it is the most that such a model reads.
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", metavar="A,B", help="train these anew")
    parser.add_argument("--page", action="store_true", help="train none")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "bottleneck", help="where runs are kept")
    parser.add_argument(
        "--quick", action="store_true", help="smoke test: 2 steps each, the page beside the runs"
    )
    given = parser.parse_args()
    runs = given.runs
    if unknown := set((given.only or "gru").split(",")) - set(MODELS):
        parser.error(f"no models: {', '.join(sorted(unknown))}; there are {', '.join(MODELS)}")
    if not given.page:
        write_data(runs)
    for task in () if given.page else TASKS:
        for name in given.only.split(",") if given.only else MODELS:
            if given.only or not (runs / f"{task}-{name}.json").exists():
                train(name, task, runs, "2steps" if given.quick else BUDGET)
    names = [f"{task}-{name}" for task in TASKS for name in MODELS]
    every = {
        name: json.loads((runs / f"{name}.json").read_text())
        for name in names
        if (runs / f"{name}.json").exists()
    }
    if every:
        docs = runs if given.quick else ROOT / "docs"
        draw(every, docs / "pictures" / "bottleneck.png")
        (docs / "bottleneck.md").write_text(page(every), encoding="utf-8")


if __name__ == "__main__":
    main()
