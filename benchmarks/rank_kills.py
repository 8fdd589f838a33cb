"""Kill random ranks with SIGKILL at random moments, resume the run, and count the endings that are bit-equal.

    python benchmarks/rank_kills.py --kills 200

Two to four processes train together: each with all weights (then any number of them goes on, and the run
must end as one process does), with a part of each weight (`--fsdp`), of each layer (`--tp 2`), of the
layers (`--pp 2`), or of the experts (`--ep 2`). The others are ended as a launcher does. Moments are
uniform from the start of the processes to their end, so they include the start, saves, evaluations and the
end. The processes are forked, with everything imported.
"""

import argparse
import operator
import os
import random
import signal
import socket
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import astuple, dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

from benchmarks import kill

SHARED = (
    *kill.SHARED,
    "data.batch_tokens=192",
    "training.checkpoint_seconds=0.05",
    "training.evaluate_every=10",
)
ATTENTION = (
    "task.batching=windows",
    "model.mixers=attention",
    "model.attention.heads=2",
    "model.positions.kind=rotary",
)
EXPERTS = ("model.feedforward=moe", "model.experts.count=4", "model.experts.top_k=2")
MAX_KILLS = 3
"""Kills of one run at most."""
ENDING_SECONDS = 20
"""The longest time in which ranks end that another rank has left."""


@dataclass(frozen=True)
class Moment:
    """The rank that is killed, and how long after the start."""

    rank: int
    seconds: float


@dataclass(frozen=True)
class Counts:
    kills: int = 0
    resumable: int = 0
    """Kills that left a checkpoint."""
    endings: int = 0
    equal: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*map(operator.add, astuple(self), astuple(other)))

    def __str__(self) -> str:
        saved = f"{self.resumable} of them after a checkpoint"
        return f"{self.kills:4} kills, {saved}; {self.equal} of {self.endings} endings bit-equal"


@dataclass(frozen=True)
class Case:
    """How processes train together. The number of processes is chosen anew at each start."""

    processes: tuple[int, ...]
    settings: tuple[str, ...]
    options: tuple[str, ...] = ()

    @property
    def reference(self) -> int:
        """The number of processes of the run that is never killed."""
        return self.processes[0] if self.options else 1


CASES = {
    "2 to 4 processes": Case((2, 3, 4), (*kill.MIXERS["lstm"], "--slots", "12")),
    "2 processes, --fsdp": Case((2,), (*kill.MIXERS["gru"], "--slots", "2"), ("--fsdp",)),
    "4 processes, --fsdp": Case((4,), (*ATTENTION, "--slots", "4"), ("--fsdp",)),
    "4 processes, --tp 2": Case((4,), (*ATTENTION, "--slots", "2"), ("--tp", "2")),
    "2 processes, --pp 2": Case((2,), (*ATTENTION, "--slots", "2"), ("--pp", "2")),
    "2 processes, --ep 2": Case((2,), (*ATTENTION, *EXPERTS, "--slots", "2"), ("--ep", "2")),
}


def rank_command(folder: Path, arguments: list[str]) -> None:
    """Run a command as one of several ranks. The first arguments are its rank, their number and a port."""
    rank, size, port, *rest = arguments
    os.environ |= {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    kill.command(folder, rest)


def start_ranks(folder: Path, arguments: list[str], size: int) -> list[BaseProcess]:
    """Start a command in several processes."""
    if size == 1:
        return [kill.start(folder, arguments)]
    port = free_port()
    return [
        kill.start(folder, [str(rank), str(size), str(port), *arguments], rank_command)
        for rank in range(size)
    ]


def free_port() -> int:
    """Return a port that no process listens on."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port: int = server.getsockname()[1]
        return port


def end(ranks: list[BaseProcess]) -> None:
    """End the ranks that are left, as a launcher does."""
    for process in ranks:
        process.terminate()
    for process in ranks:
        process.join(ENDING_SECONDS)
    for process in ranks:
        process.kill()
        process.join()


def train(folder: Path, case: Case, steps: int, size: int, kill_at: Moment | None = None) -> bool:
    """Start `folder/run`, or resume it, in `size` processes. Return whether a rank was killed."""
    arguments = ["resume", "run"]
    if not (folder / "run").exists():
        arguments = ["train", "text.txt", "--run", "run", "--model", "lstm", *SHARED, *case.settings]
        arguments += ["--budget", f"{steps}steps"]
    ranks = start_ranks(folder, [*arguments, *(case.options if size > 1 else ())], size)
    if kill_at is not None:
        victim = ranks.pop(kill_at.rank)
        victim.join(kill_at.seconds)
        victim.kill()
        victim.join()
        if victim.exitcode == -signal.SIGKILL:
            end(ranks)
            return True
    for process in ranks:
        process.join()
    return False


def is_finished(folder: Path) -> bool:
    return (folder / "run" / "curves.png").exists()


def train_unbroken(folder: Path, case: Case, steps: int, size: int) -> float:
    """Train `folder/run` to its end. Return the seconds that it took."""
    began = time.monotonic()
    train(folder, case, steps, size)
    if not is_finished(folder):
        raise RuntimeError(f"{folder}: not finished: {(folder / 'output.txt').read_text()[-2000:]}")
    return time.monotonic() - began


def train_killed(folder: Path, case: Case, steps: int, chance: random.Random, seconds: float) -> Counts:
    """Train `folder/run` to its end, killed up to MAX_KILLS times, each at a random time within `seconds`."""
    kills, resumable = 0, 0
    for _ in range(2 * MAX_KILLS):
        size = chance.choice(case.processes)
        moment = Moment(chance.randrange(size), chance.uniform(0, seconds)) if kills < MAX_KILLS else None
        if train(folder, case, steps, size, moment):
            kills += 1
            resumable += any((folder / "run" / "checkpoints").glob("[0-9]*"))
        if is_finished(folder):
            return Counts(kills, resumable)
    raise RuntimeError(f"{folder}: not finished: {(folder / 'output.txt').read_text()[-2000:]}")


def kill_case(parent: Path, name: str, steps: int, kills: int, seed: int) -> Counts:
    """Kill ranks of runs of one case at least `kills` times."""
    case, label = CASES[name], name.replace(" ", "-")
    reference = kill.new_folder(parent, f"{label}-unbroken")
    train_unbroken(reference, case, steps, case.reference)
    expected = kill.ending(reference / "run")
    seconds = train_unbroken(kill.new_folder(parent, f"{label}-timed"), case, steps, case.processes[-1])
    print(f"{name}: {seconds:.1f} s unbroken", file=sys.stderr, flush=True)
    chance, counts = random.Random(f"{seed} {name}"), Counts()
    while counts.kills < kills:
        folder = kill.new_folder(parent, f"{label}-{counts.endings}")
        killed = train_killed(folder, case, steps, chance, seconds)
        ending = kill.ending(folder / "run")
        unequal = [key for key in expected if ending[key] != expected[key]]
        if unequal:
            print(f"{name}, ending {counts.endings}: other {', '.join(unequal)}", flush=True)
        counts += Counts(killed.kills, killed.resumable, 1, not unequal)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    os.environ["TORCH_CPP_LOG_LEVEL"] = "ERROR"  # a rank that is killed is no news
    total = Counts()
    with tempfile.TemporaryDirectory() as temporary:
        kill.start(
            kill.new_folder(Path(temporary), "first"), ["data", "list"]
        ).join()  # waits for the imports
        for number, name in enumerate(CASES):
            share = (options.kills + number) // len(CASES)
            counts = kill_case(Path(temporary), name, options.steps, share, options.seed)
            total += counts
            print(f"{name:22} {counts}", flush=True)
    print(f"{'all':22} {total}")
    raise SystemExit(total.endings != total.equal)


if __name__ == "__main__":
    main()
