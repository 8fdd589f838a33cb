"""Try every preset, network, and choice of every setting for a few steps, and report what falls.

    FOVEAL_DATA=folder OMP_NUM_THREADS=1 python -m benchmarks.every_part            # what was not tried yet
    FOVEAL_DATA=folder python -m benchmarks.every_part --only 'network *' --again   # these once more
    FOVEAL_DATA=folder python -m benchmarks.every_part --only 'network *' --steps 100 --results longer
    FOVEAL_DATA=folder python -m benchmarks.every_part --combinations --only '*(network mlp*'

The list comes from the presets, the registries and the classes of the config (benchmarks/every/parts.py), so
a new part is tried without a change here. Each trial is the command `foveal train` on a few hundred real rows
(benchmarks/every/data.py). The views of `foveal inspect` are called on the run of each preset.

Reported are trials that crash, are refused, diverge (the loss ends above that of the untrained model, or of
one answer for all), learn nothing, or take more than three times as long a step as the default. Not each of
them is a fault: many combinations are refused for a good reason, and twenty steps are few: try with more
--steps. Results are stored in --results, so a stopped script continues.
"""

import argparse
import hashlib
import json
import os
import sys
from collections import Counter
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path

import torch

from benchmarks.every.data import task_data
from benchmarks.every.parts import STEPS, Trial, base, combinations, trials, untried_settings
from benchmarks.every.trial import Outcome, attempt, to_json
from benchmarks.timing import ROOT
from foveal.inspection.registry import VIEWS

SLOW = 3.0
"""A step that takes more than this over the default's is reported."""
IMPORTED = ("foveal.commands.train", "foveal.commands.inspect_view", "matplotlib.backends.backend_agg")
"""Modules that are imported once, and not in each copy of this process."""


def stored(trial: Trial, results: Path) -> Path:
    """Return the file of a trial's result."""
    name = "".join(letter if letter.isalnum() or letter in "-.=" else "_" for letter in trial.name)
    return results / f"{name[:100]}-{hashlib.sha256(trial.name.encode()).hexdigest()[:8]}.json"


def load(path: Path) -> Outcome:
    return Outcome(**json.loads(path.read_text()))


def attempt_all(chosen: list[Trial], data: Path, results: Path, steps: int) -> None:
    """Try what has no result yet, and store each result at once."""
    views = [*VIEWS]
    for number, trial in enumerate(chosen, 1):
        path = stored(trial, results)
        if path.exists():
            continue
        rows = task_data(base(trial.preset).task, data, results / "data")
        if rows is None:
            outcome = Outcome(
                1, f"no data for the task {base(trial.preset).task}: add them to benchmarks/every/data.py"
            )
        else:
            looked = views if trial.name.startswith("preset ") else []
            outcome = attempt(trial, rows, results / f"trial-{os.getpid()}", looked, steps)
        path.write_text(to_json(outcome))
        said = outcome.verdict or "fine"
        print(
            f"{number}/{len(chosen)} {trial.name}: {said} {outcome.message}"[:200],
            file=sys.stderr,
            flush=True,
        )


def number(value: float | None, digits: str = ".3g") -> str:
    return "" if value is None else format(value, digits)


def row(trial: Trial, outcome: Outcome, default: Outcome | None) -> str:
    """Return the row of a trial that falls; empty if nothing is wrong, or what is wrong with the default."""
    as_default = default is not None and outcome.verdict == default.verdict
    faults = [outcome.verdict] if outcome.verdict and not as_default else []
    faults += [f"view {view}" for view in outcome.views]
    times = None
    if default is not None and default.step_seconds and outcome.step_seconds:
        times = outcome.step_seconds / default.step_seconds
        faults += ["slow"] if times > SLOW else []
    if not faults:
        return ""
    message = " ".join([outcome.message, *outcome.views.values()]).replace("|", "/").strip()
    losses = [number(value) for value in (outcome.first, outcome.constant, outcome.last)]
    seconds = None if outcome.step_seconds is None else 1000 * outcome.step_seconds
    cells = [trial.name, ", ".join(faults), *losses, number(seconds, ".0f"), number(times, ".1f"), message]
    return f"| {' | '.join(cells)} |"


def table(chosen: list[Trial], results: Path) -> str:
    """Return the table of the trials that fall, the refused ones last, and the number of each kind."""
    outcomes = {trial.name: load(stored(trial, results)) for trial in chosen}
    defaults = {trial.name: stored(trial, results) for trial in trials()}
    rows = []
    for trial in sorted(chosen, key=lambda one: outcomes[one.name].verdict == "refused"):
        default = defaults.get(trial.default)
        compared = load(default) if default is not None and default.exists() else None
        rows.append(row(trial, outcomes[trial.name], compared))
    counts = Counter(outcome.verdict or "fine" for outcome in outcomes.values())
    columns = "trial", "what is wrong", "first loss", "constant", "last loss", "ms a step", "times", "message"
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|", *filter(None, rows)]
    summary = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    free = ", ".join(untried_settings())
    return "\n".join([*lines, "", f"{len(chosen)} trials: {summary}", f"Free text, not tried: {free}"])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="+", default=["*"], metavar="PATTERN", help="trials whose names match, as in a shell"
    )
    parser.add_argument("--again", action="store_true", help="try them again, though they have results")
    parser.add_argument("--combinations", action="store_true", help="also what users combine; hours")
    parser.add_argument(
        "--steps", type=int, default=STEPS, help="steps of each trial, with --results of their own"
    )
    parser.add_argument("--list", action="store_true", help="print the names of the trials")
    parser.add_argument(
        "--results", type=Path, default=ROOT / "runs" / "every-part", help="folder of the results"
    )
    options = parser.parse_args()
    every = trials() + (combinations() if options.combinations else [])
    chosen = [trial for trial in every if any(fnmatch(trial.name, only) for only in options.only)]
    if options.list:
        print("\n".join(trial.name for trial in chosen))
        return
    data = os.environ.get("FOVEAL_DATA")
    if data is None:
        parser.error("set FOVEAL_DATA to the folder with the data that benchmarks/README.md lists")
    results = options.results.resolve()
    results.mkdir(parents=True, exist_ok=True)
    for trial in chosen if options.again else []:
        stored(trial, results).unlink(missing_ok=True)
    os.environ["FOVEAL_CACHE"] = str(results / "cache")
    torch.set_num_threads(1)
    for module in IMPORTED:
        import_module(module)
    attempt_all(chosen, Path(data), results, options.steps)
    print(table(chosen, results))


if __name__ == "__main__":
    main()
