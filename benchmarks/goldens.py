"""Write the sha256 of every preset's weights after 20 steps on small data, to be compared across checkouts.

    PYTHONPATH=checkout python benchmarks/goldens.py OUT.json [--only lstm,images] [--renamed old=new]
    python benchmarks/goldens.py --compare OLD.json NEW.json [--renamed old=new]

It calls the command alone, on the CPU, in one thread, two presets at a time. `weights` are those of the last
checkpoint, `values` the same without the names of tensors, `kept` those that the run keeps: the best ones, or
their average. Three presets are also stopped by SIGINT and resumed, as resumed/NAME, which has to end in the
same. Names are of this file's presets; `--renamed` says how they are called in the checkout, or in NEW.json.
"""

import argparse
import hashlib
import json
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from numpy.typing import NDArray
from PIL import Image

STEPS = 20
STOP_AT = 6
"""Steps after which a run that will be resumed is stopped."""
TO_RESUME = ("lstm", "translate", "images")
RESUMED = "resumed/"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
EQUAL = "equal"
LIMIT = 900
"""Seconds a command may take, on a machine that has other things to do too."""
COLOURS = {"red": (220, 40, 40), "green": (40, 180, 60), "blue": (50, 70, 220)}
SHAPES = {"bar": (0.8, 0.25), "post": (0.25, 0.8), "block": (0.5, 0.5)}
"""Height and width, as shares of the picture."""
KINDS = ("table", "door", "lamp")
RATE = 8000
Row = dict[str, Any]


# What is written there: words.


def words(chance: random.Random, count: int) -> list[str]:
    """Make up words of one to three syllables, none of them twice."""
    made: dict[str, None] = {}
    while len(made) < count:
        made[
            "".join(chance.choice("bdklmnrst") + chance.choice("aeiou") for _ in range(chance.randint(1, 3)))
        ] = None
    return [*made]


def sentences(count: int, seed: int = 0) -> list[str]:
    """Make up sentences of three to nine of sixty words."""
    chance = random.Random(seed)
    known = words(chance, 60)
    return [" ".join(chance.choices(known, k=chance.randint(3, 9))) for _ in range(count)]


def write_rows(path: Path, rows: list[Row]) -> None:
    """Write a table of JSON lines."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def write_text(folder: Path, lines: int = 900) -> str:
    """Write a text: several batches of most presets, so that streams go on from batch to batch."""
    (folder / "text.txt").write_text("".join(f"{line.capitalize()}.\n" for line in sentences(lines)))
    return "text.txt"


def write_short_text(folder: Path) -> str:
    """Write a text for what is slow on a CPU."""
    return write_text(folder, 240)


def write_pairs(folder: Path) -> str:
    """Write sentences, each with its words in reverse order and spelled backwards."""
    rows = [f"{line}\t{line[::-1].upper()}\n" for line in sentences(200, 1)]
    (folder / "pairs.tsv").write_text("source\ttarget\n" + "".join(rows))
    return "pairs.tsv"


def write_labels(folder: Path) -> str:
    """Write texts with a label each: how they end."""
    rows = [f"{line},{'open' if line[-1] in 'ae' else 'closed'}\n" for line in sentences(200, 2)]
    (folder / "labels.csv").write_text("text,label\n" + "".join(rows))
    return "labels.csv"


def write_tags(folder: Path) -> str:
    """Write sentences in CoNLL-U, each word tagged by its length."""
    lines = []
    for sentence in sentences(160, 3):
        for number, word in enumerate(sentence.split(), 1):
            tag = {2: "DET", 4: "NOUN"}.get(len(word), "VERB")
            lines.append("\t".join([str(number), word, word, tag, *"_" * 6]))
        lines.append("")
    (folder / "tags.conllu").write_text("\n".join(lines) + "\n")
    return "tags.conllu"


# What is measured: series and sounds.


def write_series(folder: Path) -> str:
    """Write series of two noisy channels, of which the first rises or falls."""
    draw = np.random.default_rng(4)
    lines = ["@problemName slopes", "@univariate false", "@classLabel true up down", "@data"]
    for number in range(120):
        steps, name = int(draw.integers(8, 20)), ("up", "down")[number % 2]
        values = draw.normal(size=(2, steps))
        values[0] += np.arange(steps) * (1 if name == "up" else -1)
        lines.append(":".join([*(",".join(f"{value:.4f}" for value in channel) for channel in values), name]))
    (folder / "series.ts").write_text("\n".join(lines) + "\n")
    return "series.ts"


def write_steps(folder: Path) -> str:
    """Write series, each step labelled by whether it and the one before it are above 0."""
    draw = np.random.default_rng(5)
    lengths = draw.integers(8, 20, 120)
    x = draw.normal(size=(int(lengths.sum()), 2)).round(4)
    y = np.where((x[:, 0] > 0) & (np.roll(x[:, 0], 1) > 0), "both", "not")
    np.savez(folder / "steps.npz", x=x, y=y, lengths=lengths)
    return "steps.npz"


def tones(count: int) -> list[tuple[str, NDArray[np.float64]]]:
    """Make noisy tones of two pitches, each with its name."""
    draw, made = np.random.default_rng(6), []
    for number in range(count):
        name, pitch = (("low", 220), ("high", 880))[number % 2]
        wave = np.sin(np.arange(1600 + 40 * number) * pitch * 2 * np.pi / RATE)
        made.append((name, 0.3 * wave + 0.02 * draw.normal(size=len(wave))))
    return made


def write_sounds(folder: Path) -> str:
    """Write recordings in a folder for each label."""
    for number, (name, wave) in enumerate(tones(60)):
        (folder / name).mkdir(exist_ok=True)
        soundfile.write(folder / name / f"{number}.wav", wave, RATE)
    return "."


def write_speech(folder: Path) -> str:
    """Write recordings with a text each."""
    rows = ["file_name,text"]
    for number, (name, wave) in enumerate(tones(60)):
        soundfile.write(folder / f"{number}.wav", wave, RATE)
        rows.append(f"{number}.wav,a {name} tone")
    (folder / "metadata.csv").write_text("\n".join(rows) + "\n")
    return "."


# What is seen: pictures, clips and maps.


@dataclass(frozen=True)
class Scene:
    """A shape of a colour, somewhere on a dark noisy ground."""

    colour: str
    shape: str
    picture: Image.Image


def scenes(count: int, side: int, seed: int) -> list[Scene]:
    """Draw so many."""
    draw, made = np.random.default_rng(seed), []
    for number in range(count):
        colour, shape = [*COLOURS][number % 3], [*SHAPES][number // 3 % 3]
        pixels = draw.integers(0, 60, (side, side, 3), np.uint8)
        high, wide = (round(side * share) for share in SHAPES[shape])
        top, left = int(draw.integers(0, side - high)), int(draw.integers(0, side - wide))
        pixels[top : top + high, left : left + wide] = COLOURS[colour]
        made.append(Scene(colour, shape, Image.fromarray(pixels)))
    return made


def write_classes(folder: Path, count: int) -> str:
    """Write pictures in a folder for each class."""
    for number, scene in enumerate(scenes(count, 32, 7)):
        (folder / scene.shape).mkdir(exist_ok=True)
        scene.picture.save(folder / scene.shape / f"{number}.png")
    return "."


def write_images(folder: Path) -> str:
    """Write 150 pictures by class: more than one batch of most presets."""
    return write_classes(folder, 150)


def write_few_images(folder: Path) -> str:
    """Write 40 pictures by class, for networks that are slow on a CPU."""
    return write_classes(folder, 40)


def write_captions(folder: Path) -> str:
    """Write pictures with a text each."""
    rows = ["file_name,text"]
    for number, scene in enumerate(scenes(40, 64, 8)):
        scene.picture.save(folder / f"{number}.png")
        rows.append(f"{number}.png,a {scene.colour} {scene.shape} number {number % 7}")
    (folder / "metadata.csv").write_text("\n".join(rows) + "\n")
    return "."


def questions(scene: Scene) -> list[Row]:
    """Ask what colour and what shape, the second of which goes on from the first."""
    first = {"question": "what colour is it?", "answer": scene.colour, "choices": [*COLOURS], "history": ""}
    said = f"{first['question']} {scene.colour}."
    return [first, {"question": "what shape?", "answer": scene.shape, "choices": [*SHAPES], "history": said}]


def write_asked(folder: Path, *columns: str) -> str:
    """Write pictures with questions, and with these columns about them."""
    rows = []
    for number, scene in enumerate(scenes(60, 32, 9)):
        scene.picture.save(folder / f"{number}.png")
        for row in questions(scene):
            rows.append({"file_name": f"{number}.png", **{name: row[name] for name in columns}})
    write_rows(folder / "metadata.jsonl", rows)
    return "."


def write_questions(folder: Path) -> str:
    """Write questions with answers and choices."""
    return write_asked(folder, "question", "answer", "choices")


def write_dialogs(folder: Path) -> str:
    """Write questions with answers and what was said before."""
    return write_asked(folder, "question", "answer", "history")


def write_clips(folder: Path) -> str:
    """Write clips of a moving block with a label, a label for each frame, and a text."""
    draw, count, longest, side = np.random.default_rng(10), 80, 6, 32
    clips, names = np.zeros((count, longest, side, side), np.uint8), np.full((count, longest), "", "U6")
    lengths = draw.integers(3, longest + 1, count)
    for number, length in enumerate(lengths):
        place, axis = draw.integers(0, 8, 2), number % 2
        for frame in range(length):
            clips[number, frame, place[0] : place[0] + 8, place[1] : place[1] + 8] = 200
            names[number, frame] = ("down", "across")[axis] if frame else "still"
            place[axis] += 3
    texts = np.array([f"it goes {name}" for name in names[:, 1]])
    np.savez(folder / "clips.npz", clips=clips, lengths=lengths, label=names[:, 1], labels=names, text=texts)
    return "clips.npz"


def write_maps(folder: Path) -> str:
    """Write corridors between two things, whose end is a step away or two, or behind one's back."""
    things = "abcdefghijkl"  # four of each kind
    walks = {
        "one step on": "forward stop",
        "two steps on": "forward forward stop",
        "turn left": "left stop",
    }
    rows = []
    for number in range(len(things) ** 2):
        first, last = (things[place] for place in divmod(number, len(things)))
        told = [*walks][number % 3]
        rows.append(
            {
                "map": ["#####", f"{first}...{last}", "#####"],
                "instruction": f"{told} before the {KINDS[number % len(things) // 4]}",
                "start": [1, 1, "east"],
                "path": walks[told],
            }
        )
    write_rows(folder / "maps.jsonl", rows)
    return "maps.jsonl"


MAKERS: dict[Callable[[Path], str], str] = {
    write_short_text: "mask",
    write_few_images: "airbench96 airbench95 airbench vit",
    write_captions: "caption caption-bottleneck caption-hard caption-patches caption-transformer read",
    write_images: "images features glimpse draw",
    write_text: "attention conv demo gru lstm mamba min-char-rnn moe rnn rwkv s5",
    write_pairs: "translate translate-gru transduce",
    write_labels: "classify",
    write_tags: "tag",
    write_series: "series",
    write_steps: "steps",
    write_sounds: "sounds",
    write_speech: "listen",
    write_questions: "answer reply choose",
    write_dialogs: "dialog",
    write_clips: "clips frames narrate",
    write_maps: "navigate",
}
"""What writes data into a folder, and returns what to train on there; and for which presets."""


# The runs.


class Failed(Exception):
    """What the command said where it did not do what it should."""


@dataclass(frozen=True)
class Job:
    """A preset to train, as it is called in the checkout; `resumed` if it is stopped on the way."""

    preset: str
    data: str
    resumed: bool = False

    @property
    def title(self) -> str:
        return RESUMED + self.preset if self.resumed else self.preset


class Workshop:
    """A folder with data and runs, where the command of the checkout with `package` is called."""

    def __init__(self, folder: Path, package: Path):
        self.folder = folder
        paths = [str(package.parent), os.environ.get("PYTHONPATH", "")]
        own = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "FOVEAL_CACHE": str(folder / "cache")}
        self.environment = os.environ | dict.fromkeys(THREADS, "1") | own

    def jobs(self, presets: dict[str, str]) -> list[Job]:
        """Write the data of these presets, named here and in the checkout; say what is to be trained."""
        found, again = [], []
        for write, names in MAKERS.items():
            chosen = [name for name in names.split() if name in presets]
            if chosen:
                data = Path("data", write.__name__.removeprefix("write_"))
                (self.folder / data).mkdir(parents=True)
                data /= write(self.folder / data)
                found += [Job(presets[name], str(data)) for name in chosen]
                again += [Job(presets[name], str(data), True) for name in chosen if name in TO_RESUME]
        return again + found

    def do(self, job: Job) -> dict[str, Any]:
        """Train, and hash the weights that come out."""
        began, run = time.monotonic(), Path("runs", job.title.replace("/", "-"))
        budget = ("--budget", f"{STEPS}steps", "--device", "cpu")
        train = ("train", job.data, "--model", job.preset, "--run", str(run), *budget)
        if job.resumed:
            self._call(*train, stopped=self.folder / run)
            if steps_done(self.folder / run) >= STEPS:
                raise Failed(f"{job.title}: was stopped behind its last step; make STOP_AT less")
            self._call("resume", str(run))
        else:
            self._call(*train)
        made = hashes(last_weights(self.folder / run))
        made["kept"] = hashes(self.folder / run / "model.safetensors")["weights"]
        print(f"{job.title:22} {time.monotonic() - began:5.1f} s  {made['weights'][:16]}", file=sys.stderr)
        return made | {"steps": STEPS}

    def _call(self, *arguments: str, stopped: Path | None = None) -> None:
        """Call the command to its end, or until the run `stopped` has done some steps and is told to stop."""
        command = [sys.executable, "-m", "foveal", *arguments]
        began = time.monotonic()
        with (
            tempfile.TemporaryFile("w+") as said,
            subprocess.Popen(
                command, cwd=self.folder, env=self.environment, stdout=said, stderr=said
            ) as process,
        ):
            told = False
            while process.poll() is None:
                if stopped and not told and steps_done(stopped) >= STOP_AT:
                    process.send_signal(signal.SIGINT)
                    told = True
                if time.monotonic() - began > LIMIT:
                    process.kill()
                time.sleep(0.005)
            said.seek(0)
            if process.returncode != (128 + signal.SIGINT if stopped else 0):
                what = "could not be stopped part way" if stopped else "failed"
                code = f"{what}, with exit code {process.returncode}"
                raise Failed(f"`foveal {' '.join(arguments)}` {code}:\n{said.read().strip()}")


def steps_done(run: Path) -> int:
    """How many steps the log of a run has."""
    log = run / "metrics.jsonl"
    return log.read_bytes().count(b'"kind": "step"') if log.exists() else 0


def last_weights(run: Path) -> Path:
    """The weights of the checkpoint at the end, which no evaluation chose and no average changed."""
    found = run / "checkpoints" / str(STEPS) / "weights.safetensors"
    if not found.exists():
        there = sorted(str(path.relative_to(run)) for path in run.rglob("*.safetensors"))
        raise Failed(f"{found}: not there, but {', '.join(there)}")
    return found


def hashes(path: Path) -> dict[str, str]:
    """The sha256 of all tensors of a file by name: of name, type, shape and bytes; and without the names."""
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header.pop("__metadata__", None)
    weights, values = hashlib.sha256(), []
    for name, facts in sorted(header.items()):
        first, last = (8 + size + offset for offset in facts["data_offsets"])
        value = f"{facts['dtype']} {facts['shape']}\n".encode() + content[first:last]
        weights.update(f"{name}\n".encode() + value)
        values.append(hashlib.sha256(value).hexdigest())
    return {
        "weights": weights.hexdigest(),
        "values": hashlib.sha256("".join(sorted(values)).encode()).hexdigest(),
    }


def presets_of(package: Path) -> list[str]:
    """The names of all presets of a checkout."""
    found = sorted(path.stem for path in package.rglob("presets/*.toml"))
    return found or sys.exit(f"{package}: no presets/*.toml")


def chosen_presets(package: Path, only: list[str], renamed: dict[str, str]) -> dict[str, str]:
    """The presets to train, by their names in this file: `only` these, else all of the checkout."""
    there = presets_of(package)
    known = {renamed.get(name, name): name for names in MAKERS.values() for name in names.split()}
    if unknown := sorted({*only} - {*there}):
        sys.exit(f"no presets: {', '.join(unknown)}; there are {', '.join(there)}")
    if dataless := sorted({*(only or there)} - {*known}):
        sys.exit(
            f"no data for the presets {', '.join(dataless)}: name them in MAKERS, or say --renamed old=new"
        )
    for name in [] if only else sorted({*known} - {*there}):
        print(f"{name}: no such preset here", file=sys.stderr)
    return {known[name]: name for name in only or there}


def machine(package: Path) -> dict[str, str]:
    """What the weights depend on: processor, torch, commit; it ends in + if the package was changed since."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    changed = git(package, "status", "--short", ".")
    return {
        "cpu": next(names, platform.machine()),
        "torch": version("torch"),
        "commit": git(package, "rev-parse", "HEAD") + ("+" if changed else ""),
    }


def git(folder: Path, *command: str) -> str:
    return subprocess.run(["git", *command], cwd=folder, capture_output=True, text=True).stdout.strip()


def train_all(package: Path, presets: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Train all, two at a time; what fails is said when all have ended, and ends the program."""
    made: dict[str, dict[str, Any]] = {}
    failures = []
    with tempfile.TemporaryDirectory(prefix="goldens-") as folder, ThreadPoolExecutor(2) as pool:
        workshop = Workshop(Path(folder), package)
        begun = [(job.title, pool.submit(workshop.do, job)) for job in workshop.jobs(presets)]
        for title, future in begun:
            try:
                made[title] = future.result()
            except Failed as failure:
                failures.append(f"{title}: {failure}")
    if failures:
        sys.exit(
            f"{len(failures)} of {len(begun)} failed, nothing is written; they said:\n" + "\n".join(failures)
        )
    return dict(sorted(made.items()))


def resumed_equal(made: dict[str, dict[str, Any]]) -> bool:
    """Say of each resumed run whether it ended as the one that was not stopped."""
    every = {
        name: made[name] == made[name.removeprefix(RESUMED)] for name in made if name.startswith(RESUMED)
    }
    for name, equal in every.items():
        said = "equal to" if equal else "DIFFERENT from"
        print(f"{name}: {said} the run that was not stopped", file=sys.stderr)
    return all(every.values())


def compare(old: dict[str, Any], new: dict[str, Any], renamed: dict[str, str]) -> bool:
    """Print what is equal and what is not; whether all is equal and nothing is missing."""
    for fact, value in old.pop("machine").items():
        print(f"{fact:22} {value} | {new['machine'][fact]}")
    new.pop("machine")
    verdicts: dict[str, str] = {}
    for name, golden in old.items():
        preset = name.removeprefix(RESUMED)
        there = name.removesuffix(preset) + renamed.get(preset, preset)
        verdicts[f"{name} = {there}" if name != there else name] = verdict(golden, new.pop(there, None))
    verdicts |= dict.fromkeys(new, "missing in the old file")
    for name, said in verdicts.items():
        print(f"{name:22} {said}")
    equal = sum(said == EQUAL for said in verdicts.values())
    print(f"{equal} of {len(verdicts)} equal")
    return equal == len(verdicts)


def verdict(old: dict[str, Any], new: dict[str, Any] | None) -> str:
    """Say whether two goldens are equal, and if not, in what they differ."""
    if new is None:
        return "missing in the new file"
    if old == new:
        return EQUAL
    return "DIFFERENT in " + ", ".join(
        fact for fact in sorted({*old, *new}) if old.get(fact) != new.get(fact)
    )


def options() -> argparse.Namespace:
    """What is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", nargs="?", type=Path, metavar="OUT.json", help="what to write")
    parser.add_argument("--only", default="", metavar="A,B", help="these presets, as the checkout calls them")
    parser.add_argument("--renamed", default="", metavar="OLD=NEW,...", help="what presets are called now")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("OLD.json", "NEW.json"))
    given = parser.parse_args()
    if (given.out is None) == (given.compare is None):
        parser.error("give either OUT.json or --compare OLD.json NEW.json")
    try:
        given.renamed = dict(pair.split("=") for pair in filter(None, given.renamed.split(",")))
    except ValueError:
        parser.error("--renamed: give OLD=NEW, with commas between several")
    return given


def main() -> None:
    given = options()
    if given.compare:
        old, new = (json.loads(path.read_text()) for path in given.compare)
        raise SystemExit(not compare(old, new, given.renamed))
    found = find_spec("foveal")
    if found is None or found.origin is None:
        sys.exit("no foveal: set PYTHONPATH to a checkout")
    package = Path(found.origin).resolve().parent
    presets = chosen_presets(package, [*filter(None, given.only.split(","))], given.renamed)
    began = time.monotonic()
    made = train_all(package, presets)
    given.out.write_text(json.dumps({"machine": machine(package)} | made, indent=1) + "\n")
    print(f"{len(made)} runs in {time.monotonic() - began:.0f} s", file=sys.stderr)
    raise SystemExit(not resumed_equal(made))


if __name__ == "__main__":
    main()
