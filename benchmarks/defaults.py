"""Compare `foveal train DATA --test TEST` without settings with ten lines of scikit-learn.

    python -m benchmarks.defaults --data folder                     # what has no result yet
    python -m benchmarks.defaults --data folder --only drugs --seeds 1
    python -m benchmarks.defaults --data folder --held-out          # the held-out data sets too

Writes docs/defaults.md, or prints the rows of --only. Packages are fetched once and their data written into
--data. Results are stored in --runs, so a stopped script continues; after a change of the code give another
folder. A data set that fails has a row with the error. Needs what benchmarks/ten_lines/__init__.py names.
"""

import argparse
import json
import shutil
import subprocess
import sys
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.defaults_data import DATA_SETS, KINDS
from benchmarks.defaults_data.data_set import DataSet, prepare
from benchmarks.ten_lines.scores import Score
from benchmarks.timing import ROOT, machine, timed

MARGIN = 0.03
"""A score that is more than this below the ten lines' is marked."""
ERROR_LENGTH = 160


def _cached(path: Path, make: Any) -> dict[str, Any]:
    """Return the object in a file of JSON, made and written if there is none. An error becomes an object."""
    if not path.exists():
        try:
            result = make()
        except Exception as error:  # any failure is a row of the table
            return {"error": f"{type(error).__name__}: {error}"[-ERROR_LENGTH:]}
        path.write_text(json.dumps(result))
    loaded: dict[str, Any] = json.loads(path.read_text())
    return loaded


def train(data_set: DataSet, folder: Path, run: Path, seed: int) -> dict[str, Any]:
    """Train with default settings, and return the test score and the minutes of the whole command."""
    train_data, test_data = data_set.parts(folder)
    command = [sys.executable, "-m", "foveal", "train", str(train_data), "--test", str(test_data)]
    command += ["--run", str(run), "--json", f"training.seed={seed}"]
    shutil.rmtree(run, ignore_errors=True)
    with timed() as block:
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        raise RuntimeError(" ".join(lines[-3:])[-ERROR_LENGTH:])
    result = json.loads(done.stdout)
    score = {"score": result[data_set.metric], "split": result["split"], "steps": result["steps"]}
    return score | {"minutes": block.seconds / 60, "dirty": block.dirty}


def measure(data_set: DataSet, data: Path, runs: Path, seeds: int) -> dict[str, Any]:
    """Return the scores of the ten lines and of every seed of one data set, or the error."""
    results = runs / data_set.name
    results.mkdir(parents=True, exist_ok=True)
    try:
        folder = prepare(data_set, data)
    except Exception as error:  # such as no network: the other data sets go on
        return {"error": f"{type(error).__name__}: {error}"[-ERROR_LENGTH:]}
    parts = data_set.parts(folder)
    lines = _cached(
        results / "ten-lines.json",
        lambda: {name: asdict(score) for name, score in data_set.ten_lines(*parts).items()},
    )
    ours = []
    for seed in range(seeds):
        run = results / f"seed-{seed}"
        ours.append(
            _cached(
                results / f"{run.name}.json", lambda run=run, seed=seed: train(data_set, folder, run, seed)
            )
        )
        print(f"{data_set.name}, seed {seed}: {ours[-1]}", file=sys.stderr, flush=True)
    errors = [part["error"] for part in [lines, *ours] if "error" in part]
    return {"error": errors[0]} if errors else {"lines": lines, "ours": ours}


def percent(score: Score) -> str:
    low, high = score.interval()
    return f"{100 * score.value:.1f} ({100 * low:.1f} to {100 * high:.1f})"


def verdict(ours: Score, lines: Score) -> str:
    """Return ahead, equal (the intervals overlap) or behind, and by how much if it is too much."""
    (low, high), (lines_low, lines_high) = ours.interval(), lines.interval()
    if low > lines_high:
        return "ahead"
    points = f", {100 * (lines.value - ours.value):.1f} points below" * (lines.value - ours.value > MARGIN)
    return f"{'behind' if high < lines_low else 'equal'}{points}"


def row(kind: str, data_set: DataSet, result: dict[str, Any]) -> str:
    """Return a data set's row of the table."""
    name = f"{data_set.name}{' (held out)' * data_set.held_out}"
    if "error" in result:
        return f"| {name} | {kind} | | | | | error: {' '.join(result['error'].replace('|', '/').split())} |"
    lines = {method: Score(**score) for method, score in result["lines"].items()}
    best = max(lines, key=lambda method: lines[method].value)
    scores = [one["score"] for one in result["ours"]]
    ours = Score(mean(scores), lines[best].count)
    cells = [
        name,
        kind,
        f"{percent(ours)}; {', '.join(f'{100 * score:.1f}' for score in scores)}",
        f"{mean(one['minutes'] for one in result['ours']):.1f}",
        f"{best} {percent(lines[best])}",
        ", ".join(f"{method} {100 * score.value:.1f}" for method, score in lines.items() if method != best),
        verdict(ours, lines[best]),
    ]
    return f"| {' | '.join(cells)} |"


def page(results: dict[str, dict[str, Any]]) -> str:
    """Return the page docs/defaults.md."""
    rows = [
        row(kind, data_set, results[data_set.name])
        for kind, data_sets in KINDS.items()
        for data_set in data_sets
        if data_set.name in results
    ]
    sources = [
        f"| {one.name} | {one.description} | `{one.source}` | {one.license} |"
        for one in DATA_SETS.values()
        if one.name in results
    ]
    facts = machine()
    good = sum("| ahead" in one or "| equal" in one for one in rows)
    dirty = any(one.get("dirty") for result in results.values() for one in result.get("ours", ()))
    return f"""# Defaults against ten lines

`foveal train DATA --test TEST` without a setting, and what one would write in ten lines of scikit-learn
instead, on public data sets that no preset was tuned on. Ahead or equal on {good} of {len(rows)}.

| data | kind | foveal (95 % interval); seeds | minutes | best ten lines | other ten lines | |
|---|---|---|---|---|---|---|
{chr(10).join(rows)}

Scores are in percent: the accuracy of rows, or of words for tags; for `entities-ja` F1 of the entities. The
score of foveal is the mean of the seeds. Intervals are Wilson's (1927) for the size of the test set. Words
are counted as if they were independent, and F1 as if it were a share of the entities. *Equal* means that the
intervals overlap. Of several programs of ten lines the best by its test score is compared. Minutes are those
of the whole command.

Measured on {facts["cpu"]}, {facts["cores"]} cores, torch {facts["torch"]}, commit {facts["commit"]}, by
`python -m benchmarks.defaults`{", while other programs ran" * dirty}.

## Data

Splits are as published where there are any (`drugs`, `osuleaf`, `arrowhead`, `gunpoint`, `trace`, `pigs`,
`entities-ja`). Three of the ten subjects of `exercises` are the test set. Elsewhere a quarter of each class
is, in the order of hashes of the content. The data sets held out were drawn at random before any result was
known. Nothing is tuned on their results.

| data | question | package | license |
|---|---|---|---|
{chr(10).join(sources)}
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of the data sets")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "defaults", help="folder of the runs")
    parser.add_argument("--only", metavar="A,B", help="only these data sets; print their rows, write no page")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    parser.add_argument("--held-out", action="store_true", help="the held-out data sets too")
    options = parser.parse_args()
    if find_spec("sklearn") is None:
        parser.error(f"scikit-learn is not installed; run: {sys.executable} -m pip install scikit-learn")
    names = options.only.split(",") if options.only else list(DATA_SETS)
    if unknown := set(names) - set(DATA_SETS):
        parser.error(f"unknown data sets: {', '.join(sorted(unknown))}; choose among {', '.join(DATA_SETS)}")
    chosen = [DATA_SETS[name] for name in names if options.held_out or not DATA_SETS[name].held_out]
    if options.only and len(chosen) < len(names):
        parser.error("a data set that is held out is measured once, at the end, with --held-out")
    runs = options.runs.resolve()
    data = options.data.resolve()
    results = {one.name: measure(one, data, runs, options.seeds) for one in chosen}
    text = page(results)
    if options.only:
        print(text)
    else:
        (ROOT / "docs" / "defaults.md").write_text(text, encoding="utf-8")
    failed = [name for name, result in results.items() if "error" in result]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
