"""Kill training with SIGKILL at random moments, resume it, and count the endings that are bit-equal.

    python benchmarks/kill.py --kills 100

Each ending is held against a run that was never killed: the bytes of the weights and of the samples, and
every number in the log but the times. Processes are forked from one that has imported everything already.
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
    "rnn": ("model.mixers=rnn", "model.recurrent.learned_initial_state=true"),
    "lstm": ("model.mixers=lstm", "training.precision=bfloat16"),
    "gru": ("model.mixers=gru", "model.recurrent.reset_after=false"),
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
MOST = 3
"""Kills of one run."""
HEAVY = [
    "foveal.commands.train",
    "foveal.commands.resume",
    "torch._dynamo",
    "matplotlib.figure",
    "matplotlib.backends.backend_agg",
]

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(HEAVY)


def start(folder: Path, arguments: list[str], target: Any = None) -> BaseProcess:
    """`foveal ARGUMENTS` in `folder`, in a process that has torch already; what it says is in said.txt."""
    own_cache(folder / "cache")
    process = _context.Process(target=target or command, args=(folder, arguments))
    process.start()
    return process


def command(folder: Path, arguments: list[str]) -> None:
    """What the process does."""
    import torch

    from foveal.cli import main

    torch.set_num_threads(1)
    os.chdir(folder)
    os.environ["FOVEAL_CACHE"] = str(folder / "cache")
    sys.argv = ["foveal", *arguments]
    with Path("said.txt").open("a", buffering=1) as said, redirect_stdout(said), redirect_stderr(said):
        main()


def ending(run: Path) -> dict[str, Any]:
    """All that has to be equal."""
    lines = (run / "metrics.jsonl").read_text().splitlines()
    records = [{k: v for k, v in json.loads(line).items() if k not in TIMES} for line in lines]
    return {
        "weights": (run / "model.safetensors").read_bytes(),
        "samples": (run / "samples.jsonl").read_bytes(),
        "log": records,
        "left over": sorted(path.name for path in run.rglob("*.part")),
    }


def story(lines: int = 200, seed: int = 1) -> str:
    """Lines of random words: 21 different characters, about 38 a line."""
    choose = random.Random(seed)
    return "".join(" ".join(choose.choices(WORDS.split(), k=9)) + ".\n" for _ in range(lines))


def own_cache(folder: Path) -> Path:
    """A cache with nothing in it but this machine's kernels, whose translation takes longer than a run."""
    from foveal.store.cache import cache_folder

    kernels = cache_folder() / "kernels"
    kernels.mkdir(parents=True, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "kernels").exists():
        (folder / "kernels").symlink_to(kernels.resolve())
    return folder


def new_folder(parent: Path, name: str) -> Path:
    """A folder with a text to train on."""
    folder = parent / name
    folder.mkdir(parents=True)
    (folder / "text.txt").write_text(story())
    return folder


def train_to_the_end(
    folder: Path, settings: tuple[str, ...], killed: random.Random | None, longest: float
) -> int:
    """Train `folder/run`, killed up to MOST times within `longest` seconds each; the number of kills."""
    run, kills = folder / "run", 0
    train = ["train", "text.txt", "--run", "run", "--model", "lstm", *SHARED, *settings]
    for _ in range(MOST + 2):
        process = start(folder, ["resume", "run"] if run.exists() else train)
        if killed and kills < MOST:
            process.join(killed.uniform(0, longest))
            process.kill()
        process.join()
        kills += process.exitcode == -9
        if (run / "curves.png").exists():
            return kills
        if process.exitcode != -9:
            break
    raise RuntimeError(f"{folder}: not finished: {(folder / 'said.txt').read_text()[-2000:]}")


def kill(parent: Path, mixer: str, steps: int, kills: int, seed: int) -> tuple[int, int, int]:
    """At least `kills` kills of runs with one mixer: how many, endings, and how many of them bit-equal."""
    settings = (*MIXERS[mixer], f"training.budget={steps}steps")
    folder = new_folder(parent, f"{mixer}-whole")
    start(folder, ["data", "list"]).join()  # the first process waits for the imports
    began = time.monotonic()
    train_to_the_end(folder, settings, None, 0.0)
    longest = time.monotonic() - began
    wanted = ending(folder / "run")
    moments = random.Random(f"{seed} {mixer}")
    done = endings = equal = 0
    while done < kills:
        folder = new_folder(parent, f"{mixer}-{endings}")
        done += train_to_the_end(folder, settings, moments, longest)
        endings += 1
        equal += ending(folder / "run") == wanted
    return done, endings, equal


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    total = [0, 0, 0]
    with tempfile.TemporaryDirectory() as temporary:
        for number, mixer in enumerate(MIXERS):
            share = (chosen.kills + number) // len(MIXERS)
            counts = kill(Path(temporary), mixer, chosen.steps, share, chosen.seed)
            total = [old + new for old, new in zip(total, counts, strict=True)]
            print(f"{mixer:10} {counts[0]:4} kills, {counts[2]} of {counts[1]} endings bit-equal", flush=True)
    print(f"{'all':10} {total[0]:4} kills, {total[2]} of {total[1]} endings bit-equal")
    raise SystemExit(total[1] != total[2])


if __name__ == "__main__":
    main()
