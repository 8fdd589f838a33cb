"""Kill training with SIGKILL at random moments, resume it, and count the final results that are bit-equal.

    python benchmarks/kill.py --kills 100

Each finished run is compared with a run that was never killed: the bytes of the weights and of the samples,
and every number in the log except times. Processes are forked from one that has already imported everything.
"""

import argparse
import json
import multiprocessing
import os
import random
import sys
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

SHARED = (
    "model.layers=2",
    "model.width=16",
    "model.dropout=0.1",
    "task.batching=streams",
    "data.context_length=16",
    "data.batch_tokens=64",
    "training.grad_accumulation=2",
    "training.ema_decay=0.9",
    "training.evaluate_every=25",
    "training.checkpoint_seconds=0.05",
)
MIXERS: dict[str, tuple[str, ...]] = {
    "rnn": ("model.mixers=rnn", "model.rnn.learned_initial_state=true"),
    "lstm": ("model.mixers=lstm", "training.precision=bfloat16"),
    "gru": ("model.mixers=gru", "model.gru.reset_after=false"),
    "attention": (
        "model.mixers=attention",
        "model.attention.heads=2",
        "model.attention.window=8",
        "model.positions.kind=rotary",
        "optimizer.name=muon",
    ),
}
WORDS = "the cat sat on a mat and dog ran to big red house with all of its old friends"
TIMES = ("seconds", "tokens_per_second")
MAX_KILLS = 3
"""Kills of one run at most."""
PRELOADED = [
    "foveal.commands.train",
    "foveal.commands.resume",
    "torch._dynamo",
    "matplotlib.figure",
    "matplotlib.backends.backend_agg",
]

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(PRELOADED)


def start(folder: Path, arguments: list[str], target: Any = None) -> BaseProcess:
    """Start `foveal ARGUMENTS` in `folder`, in a process with torch imported, and log to output.txt."""
    own_cache(folder / "cache")
    process = _context.Process(target=target or command, args=(folder, arguments))
    process.start()
    return process


def command(folder: Path, arguments: list[str]) -> None:
    """Run `foveal ARGUMENTS` in `folder`, in this process."""
    import torch

    from foveal.cli import main

    torch.set_num_threads(1)
    os.chdir(folder)
    os.environ["FOVEAL_CACHE"] = str(folder / "cache")
    sys.argv = ["foveal", *arguments]
    with (
        Path("output.txt").open("a", buffering=1) as output,
        redirect_stdout(output),
        redirect_stderr(output),
    ):
        main()


def ending(run: Path) -> dict[str, Any]:
    """Return everything about a finished run that must be equal."""
    lines = (run / "metrics.jsonl").read_text().splitlines()
    records = [{k: v for k, v in json.loads(line).items() if k not in TIMES} for line in lines]
    return {
        "weights": (run / "model.safetensors").read_bytes(),
        "samples": (run / "samples.jsonl").read_bytes(),
        "statistics": (run / "statistics.jsonl").read_bytes(),
        "log": records,
        "left over": sorted(path.name for path in run.rglob("*.part")),
    }


def story(lines: int = 200, seed: int = 1) -> str:
    """Return lines of random words: 21 different characters, about 38 a line."""
    generator = random.Random(seed)
    return "".join(" ".join(generator.choices(WORDS.split(), k=9)) + ".\n" for _ in range(lines))


def own_cache(folder: Path) -> Path:
    """Return a cache that holds only this machine's kernels, whose translation takes longer than a run."""
    from foveal.store.cache import cache_folder

    kernels = cache_folder() / "kernels"
    kernels.mkdir(parents=True, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "kernels").exists():
        (folder / "kernels").symlink_to(kernels.resolve())
    return folder


def new_folder(parent: Path, name: str) -> Path:
    """Make a folder with a text to train on."""
    folder = parent / name
    folder.mkdir(parents=True)
    (folder / "text.txt").write_text(story())
    return folder


def train_to_the_end(
    folder: Path, settings: tuple[str, ...], kill_times: random.Random | None, max_seconds: float
) -> int:
    """Train `folder/run` to its end, and return the number of kills.

    With `kill_times`, the run is killed up to MAX_KILLS times, each at a random time within `max_seconds`.
    """
    run, kills = folder / "run", 0
    train = ["train", "text.txt", "--run", "run", "--model", "lstm", *SHARED, *settings]
    for _ in range(MAX_KILLS + 2):
        process = start(folder, ["resume", "run"] if run.exists() else train)
        if kill_times and kills < MAX_KILLS:
            process.join(kill_times.uniform(0, max_seconds))
            process.kill()
        process.join()
        kills += process.exitcode == -9
        if (run / "curves.png").exists():
            return kills
        if process.exitcode != -9:
            break
    raise RuntimeError(f"{folder}: not finished: {(folder / 'output.txt').read_text()[-2000:]}")


def kill(parent: Path, mixer: str, steps: int, kills: int, seed: int) -> tuple[int, int, int]:
    """Kill runs with one mixer at least `kills` times.

    Return the number of kills, of finished runs, and of bit-equal finished runs.
    """
    settings = (*MIXERS[mixer], f"training.budget={steps}steps")
    folder = new_folder(parent, f"{mixer}-uninterrupted")
    start(folder, ["data", "list"]).join()  # the first process waits for the imports
    start_time = time.monotonic()
    train_to_the_end(folder, settings, None, 0.0)
    max_seconds = time.monotonic() - start_time
    expected = ending(folder / "run")
    kill_times = random.Random(f"{seed} {mixer}")
    killed = endings = equal = 0
    while killed < kills:
        folder = new_folder(parent, f"{mixer}-{endings}")
        killed += train_to_the_end(folder, settings, kill_times, max_seconds)
        endings += 1
        equal += ending(folder / "run") == expected
    return killed, endings, equal


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    total = [0, 0, 0]
    with tempfile.TemporaryDirectory() as temporary:
        for number, mixer in enumerate(MIXERS):
            share = (options.kills + number) // len(MIXERS)
            counts = kill(Path(temporary), mixer, options.steps, share, options.seed)
            total = [old + new for old, new in zip(total, counts, strict=True)]
            print(f"{mixer:10} {counts[0]:4} kills, {counts[2]} of {counts[1]} endings bit-equal", flush=True)
    print(f"{'all':10} {total[0]:4} kills, {total[2]} of {total[1]} endings bit-equal")
    raise SystemExit(total[1] != total[2])


if __name__ == "__main__":
    main()
