"""Hash the weights of every preset after 20 steps on small data, to compare two checkouts.

    PYTHONPATH=checkout python benchmarks/goldens.py OUT.json [--only lstm,images] [--renamed old=new]
    python benchmarks/goldens.py --compare OLD.json NEW.json [--renamed old=new]

The script only runs the command `foveal`, on the CPU, in one thread, two presets at a time. It writes sha256
hashes: `weights` of the last checkpoint, `values` of the same without the names of tensors, `kept` of the
weights that the run keeps, the best or their average. Three presets are also stopped by SIGINT and resumed,
as resumed/NAME, and must have the same hashes. Presets have the names in this file; `--renamed` gives their
names in the checkout, or in NEW.json.
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
import tomllib
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
DEFAULT_WARMUP = 50
"""Steps of warm-up of presets that do not set them."""
STOP_AT = 6
"""Number of steps after which a run is stopped, to be resumed."""
TO_RESUME = ("lstm", "translate", "images")
RESUMED = "resumed/"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
EQUAL = "equal"
MAX_SECONDS = 900
"""Maximum time of a command, also on a busy machine."""
COLORS = {"red": (220, 40, 40), "green": (40, 180, 60), "blue": (50, 70, 220)}
SHAPES = {"bar": (0.8, 0.25), "post": (0.25, 0.8), "block": (0.5, 0.5)}
"""Height and width, as shares of the image."""
LANDMARKS = ("table", "door", "lamp")
RATE = 8000
Row = dict[str, Any]


# Data sets of text.


def words(generator: random.Random, count: int) -> list[str]:
    """Return `count` different random words of one to three syllables."""
    unique: dict[str, None] = {}
    while len(unique) < count:
        syllables = range(generator.randint(1, 3))
        unique["".join(generator.choice("bdklmnrst") + generator.choice("aeiou") for _ in syllables)] = None
    return [*unique]


def sentences(count: int, seed: int = 0) -> list[str]:
    """Return random sentences of three to nine words, from a vocabulary of sixty."""
    generator = random.Random(seed)
    vocabulary = words(generator, 60)
    return [" ".join(generator.choices(vocabulary, k=generator.randint(3, 9))) for _ in range(count)]


def write_rows(path: Path, rows: list[Row]) -> None:
    """Write a table of JSON lines."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def write_text(folder: Path, lines: int = 900) -> str:
    """Write a text of several batches for most presets, so that streams continue from batch to batch."""
    (folder / "text.txt").write_text("".join(f"{line.capitalize()}.\n" for line in sentences(lines)))
    return "text.txt"


def write_short_text(folder: Path) -> str:
    """Write a short text, for presets that are slow on a CPU."""
    return write_text(folder, 240)


def write_pairs(folder: Path) -> str:
    """Write pairs of a sentence and the same sentence spelled backwards in capitals."""
    rows = [f"{line}\t{line[::-1].upper()}\n" for line in sentences(200, 1)]
    (folder / "pairs.tsv").write_text("source\ttarget\n" + "".join(rows))
    return "pairs.tsv"


def write_labels(folder: Path) -> str:
    """Write texts with a label each, which depends on the last letter."""
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


# Data sets of series and recordings.


def write_series(folder: Path) -> str:
    """Write series of two noisy channels; the first rises or falls."""
    generator = np.random.default_rng(4)
    lines = ["@problemName slopes", "@univariate false", "@classLabel true up down", "@data"]
    for number in range(120):
        steps, name = int(generator.integers(8, 20)), ("up", "down")[number % 2]
        values = generator.normal(size=(2, steps))
        values[0] += np.arange(steps) * (1 if name == "up" else -1)
        lines.append(":".join([*(",".join(f"{value:.4f}" for value in channel) for channel in values), name]))
    (folder / "series.ts").write_text("\n".join(lines) + "\n")
    return "series.ts"


def write_steps(folder: Path) -> str:
    """Write series with a label for each step: whether this step and the step before are above 0."""
    generator = np.random.default_rng(5)
    lengths = generator.integers(8, 20, 120)
    x = generator.normal(size=(int(lengths.sum()), 2)).round(4)
    y = np.where((x[:, 0] > 0) & (np.roll(x[:, 0], 1) > 0), "both", "not")
    np.savez(folder / "steps.npz", x=x, y=y, lengths=lengths)
    return "steps.npz"


def tones(count: int) -> list[tuple[str, NDArray[np.float64]]]:
    """Return noisy tones of two pitches, each with its name."""
    generator, named_tones = np.random.default_rng(6), []
    for number in range(count):
        name, pitch = (("low", 220), ("high", 880))[number % 2]
        wave = np.sin(np.arange(1600 + 40 * number) * pitch * 2 * np.pi / RATE)
        named_tones.append((name, 0.3 * wave + 0.02 * generator.normal(size=len(wave))))
    return named_tones


def write_sounds(folder: Path) -> str:
    """Write recordings in a folder for each label."""
    for number, (name, wave) in enumerate(tones(60)):
        (folder / name).mkdir(exist_ok=True)
        soundfile.write(folder / name / f"{number}.wav", wave, RATE)
    return "."


def write_speech(folder: Path) -> str:
    """Write recordings with a transcript each."""
    rows = ["file_name,text"]
    for number, (name, wave) in enumerate(tones(60)):
        soundfile.write(folder / f"{number}.wav", wave, RATE)
        rows.append(f"{number}.wav,a {name} tone")
    (folder / "metadata.csv").write_text("\n".join(rows) + "\n")
    return "."


def write_labeled_frames(folder: Path) -> str:
    """Write recordings of a tone and then noise, with a label for each frame of 10 ms."""
    generator, hop, window = np.random.default_rng(7), RATE // 100, RATE // 40
    rows = []
    for number in range(60):
        half = hop * int(generator.integers(8, 14))
        tone = 0.3 * np.sin(2 * np.pi * 440 / RATE * np.arange(half))
        wave = np.concatenate([tone, generator.normal(0, 0.2, half)])
        soundfile.write(folder / f"{number}.wav", wave, RATE)
        centers = np.arange(1 + (len(wave) - window) // hop) * hop + window // 2
        labels = ["tone" if center < half else "noise" for center in centers]
        rows.append({"file_name": f"{number}.wav", "labels": labels})
    write_rows(folder / "metadata.jsonl", rows)
    return "."


def write_described_series(folder: Path) -> str:
    """Write series that rise or fall, with a text each."""
    generator = np.random.default_rng(8)
    rows = []
    for number in range(90):
        steps, slope = int(generator.integers(10, 20)), (1, -1)[number % 2]
        values = slope * np.linspace(-1, 1, steps)[:, None] + generator.normal(0, 0.1, (steps, 2))
        text = f"goes {('up', 'down')[number % 2]}"
        rows.append({"values": values.round(3).tolist(), "text": text})
    write_rows(folder / "series.jsonl", rows)
    return "series.jsonl"


# Data sets of images, clips and maps.


@dataclass(frozen=True)
class Scene:
    """A colored shape somewhere on a dark noisy background."""

    color: str
    shape: str
    image: Image.Image


def scenes(count: int, side: int, seed: int) -> list[Scene]:
    """Return `count` random scenes of `side` pixels to a side."""
    generator, drawn = np.random.default_rng(seed), []
    for number in range(count):
        color, shape = [*COLORS][number % 3], [*SHAPES][number // 3 % 3]
        pixels = generator.integers(0, 60, (side, side, 3), np.uint8)
        height, width = (round(side * share) for share in SHAPES[shape])
        top, left = int(generator.integers(0, side - height)), int(generator.integers(0, side - width))
        pixels[top : top + height, left : left + width] = COLORS[color]
        drawn.append(Scene(color, shape, Image.fromarray(pixels)))
    return drawn


def write_classes(folder: Path, count: int) -> str:
    """Write images in a folder for each class."""
    for number, scene in enumerate(scenes(count, 32, 7)):
        (folder / scene.shape).mkdir(exist_ok=True)
        scene.image.save(folder / scene.shape / f"{number}.png")
    return "."


def write_images(folder: Path) -> str:
    """Write 150 images by class: more than a batch for most presets."""
    return write_classes(folder, 150)


def write_few_images(folder: Path) -> str:
    """Write 40 images by class, for networks that are slow on a CPU."""
    return write_classes(folder, 40)


def write_captions(folder: Path) -> str:
    """Write images with a caption each."""
    rows = ["file_name,text"]
    for number, scene in enumerate(scenes(40, 64, 8)):
        scene.image.save(folder / f"{number}.png")
        rows.append(f"{number}.png,a {scene.color} {scene.shape} number {number % 7}")
    (folder / "metadata.csv").write_text("\n".join(rows) + "\n")
    return "."


def questions(scene: Scene) -> list[Row]:
    """Return questions about color and shape; the second has the first as its history."""
    first = {"question": "what colour is it?", "answer": scene.color, "choices": [*COLORS], "history": ""}
    history = f"{first['question']} {scene.color}."
    return [
        first,
        {"question": "what shape?", "answer": scene.shape, "choices": [*SHAPES], "history": history},
    ]


def write_question_rows(folder: Path, *columns: str) -> str:
    """Write images with questions, and with these columns of each question."""
    rows = []
    for number, scene in enumerate(scenes(60, 32, 9)):
        scene.image.save(folder / f"{number}.png")
        for row in questions(scene):
            rows.append({"file_name": f"{number}.png", **{name: row[name] for name in columns}})
    write_rows(folder / "metadata.jsonl", rows)
    return "."


def write_questions(folder: Path) -> str:
    """Write questions with answers and choices."""
    return write_question_rows(folder, "question", "answer", "choices")


def write_dialogs(folder: Path) -> str:
    """Write questions with answers and with the dialog before."""
    return write_question_rows(folder, "question", "answer", "history")


def write_clips(folder: Path) -> str:
    """Write clips of a moving block with a label, a label for each frame, and a text."""
    generator, count, max_frames, side = np.random.default_rng(10), 80, 6, 32
    clips, names = np.zeros((count, max_frames, side, side), np.uint8), np.full((count, max_frames), "", "U6")
    lengths = generator.integers(3, max_frames + 1, count)
    for number, length in enumerate(lengths):
        corner, axis = generator.integers(0, 8, 2), number % 2
        for frame in range(length):
            clips[number, frame, corner[0] : corner[0] + 8, corner[1] : corner[1] + 8] = 200
            names[number, frame] = ("down", "across")[axis] if frame else "still"
            corner[axis] += 3
    texts = np.array([f"it goes {name}" for name in names[:, 1]])
    np.savez(folder / "clips.npz", clips=clips, lengths=lengths, label=names[:, 1], labels=names, text=texts)
    return "clips.npz"


def write_maps(folder: Path) -> str:
    """Write corridors between two things, with a goal one or two steps ahead, or behind the start."""
    things = "abcdefghijkl"  # four of each landmark
    paths = {
        "one step on": "forward stop",
        "two steps on": "forward forward stop",
        "turn left": "left stop",
    }
    rows = []
    for number in range(len(things) ** 2):
        first, last = (things[index] for index in divmod(number, len(things)))
        direction = [*paths][number % 3]
        rows.append(
            {
                "map": ["#####", f"{first}...{last}", "#####"],
                "instruction": f"{direction} before the {LANDMARKS[number % len(things) // 4]}",
                "start": [1, 1, "east"],
                "path": paths[direction],
            }
        )
    write_rows(folder / "maps.jsonl", rows)
    return "maps.jsonl"


MAKERS: dict[Callable[[Path], str], str] = {
    write_short_text: "mask",
    write_few_images: "airbench96 airbench95 airbench vit",
    write_captions: "caption caption-bottleneck caption-hard caption-patches caption-transformer read",
    write_images: "images features patch-similarities glimpse draw",
    write_text: "attention conv demo gru lstm mamba min-char-rnn moe ngram-lstm rnn rwkv s5",
    write_pairs: "translate translate-gru transduce",
    write_labels: "classify text-ngrams",
    write_tags: "tag word-tagging",
    write_series: "series minirocket series-inception series-resnet",
    write_steps: "steps",
    write_sounds: "sounds audio-minirocket",
    write_speech: "listen",
    write_labeled_frames: "audio-tagging",
    write_described_series: "series-captioning",
    write_questions: "answer reply choose",
    write_dialogs: "dialog",
    write_clips: "clips frames narrate",
    write_maps: "navigate",
}
"""Functions that write data into a folder and return the path to train on there, and their presets."""


# Runs.


class CommandFailedError(Exception):
    """A command failed; the message has its output."""


@dataclass(frozen=True)
class Job:
    """A preset to train, by its name in the checkout; `resumed` if the run is stopped and resumed."""

    preset: str
    data: str
    resumed: bool = False

    @property
    def title(self) -> str:
        """The name of the run in the JSON file."""
        return RESUMED + self.preset if self.resumed else self.preset


class TrainingFolder:
    """A folder with data and runs, in which the command `foveal` of a checkout is run.

    `package` is the folder `foveal` of the checkout.
    """

    def __init__(self, path: Path, package: Path):
        self.path, self.package = path, package
        paths = [str(package.parent), os.environ.get("PYTHONPATH", "")]
        own = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "FOVEAL_CACHE": str(path / "cache")}
        self.environment = os.environ | dict.fromkeys(THREADS, "1") | own

    def jobs(self, presets: dict[str, str]) -> list[Job]:
        """Write the data of presets, and return the jobs.

        `presets` maps names in this file to names in the checkout.
        """
        jobs, resumed_jobs = [], []
        for write, names in MAKERS.items():
            names_here = [name for name in names.split() if name in presets]
            if names_here:
                data = Path("data", write.__name__.removeprefix("write_"))
                (self.path / data).mkdir(parents=True)
                data /= write(self.path / data)
                jobs += [Job(presets[name], str(data)) for name in names_here]
                resumed = [name for name in names_here if name in TO_RESUME]
                resumed_jobs += [Job(presets[name], str(data), True) for name in resumed]
        return resumed_jobs + jobs

    def train(self, job: Job) -> dict[str, Any]:
        """Train, and return the hashes of the weights."""
        start, run = time.monotonic(), Path("runs", job.title.replace("/", "-"))
        budget = ("--budget", f"{STEPS}steps", "--device", "cpu")
        # A training of so few steps would have a shorter warm-up than the preset's.
        warmup = f"schedule.warmup_steps={warmup_steps(self.package, job.preset)}"
        arguments = ("train", job.data, warmup, "--model", job.preset, "--run", str(run), *budget)
        if job.resumed:
            self._run(*arguments, stopped=self.path / run)
            if steps_done(self.path / run) >= STEPS:
                raise CommandFailedError(f"{job.title}: stopped after its last step; make STOP_AT smaller")
            self._run("resume", str(run))
        else:
            self._run(*arguments)
        result = hashes(last_weights(self.path / run))
        result["kept"] = hashes(self.path / run / "model.safetensors")["weights"]
        print(f"{job.title:22} {time.monotonic() - start:5.1f} s  {result['weights'][:16]}", file=sys.stderr)
        return result | {"steps": STEPS}

    def _run(self, *arguments: str, stopped: Path | None = None) -> None:
        """Run the command to its end, or stop it by SIGINT after some steps of the run `stopped`.

        Raises: CommandFailedError: the command failed, or could not be stopped.
        """
        command = [sys.executable, "-m", "foveal", *arguments]
        start = time.monotonic()
        with (
            tempfile.TemporaryFile("w+") as output,
            subprocess.Popen(
                command, cwd=self.path, env=self.environment, stdout=output, stderr=output
            ) as process,
        ):
            interrupted = False
            while process.poll() is None:
                if stopped and not interrupted and steps_done(stopped) >= STOP_AT:
                    process.send_signal(signal.SIGINT)
                    interrupted = True
                if time.monotonic() - start > MAX_SECONDS:
                    process.kill()
                time.sleep(0.005)
            output.seek(0)
            if process.returncode != (128 + signal.SIGINT if stopped else 0):
                problem = "could not be stopped in time" if stopped else "failed"
                failure = f"{problem}, with exit code {process.returncode}"
                raise CommandFailedError(
                    f"`foveal {' '.join(arguments)}` {failure}:\n{output.read().strip()}"
                )


def steps_done(run: Path) -> int:
    """Return the number of steps in the log of a run."""
    log = run / "metrics.jsonl"
    return log.read_bytes().count(b'"kind": "step"') if log.exists() else 0


def last_weights(run: Path) -> Path:
    """Return the weights of the last checkpoint, which depend on no evaluation and no average.

    Raises: CommandFailedError: there are none.
    """
    weights = run / "checkpoints" / str(STEPS) / "weights.safetensors"
    if not weights.exists():
        others = sorted(str(path.relative_to(run)) for path in run.rglob("*.safetensors"))
        raise CommandFailedError(f"{weights} is missing; there are {', '.join(others)}")
    return weights


def hashes(path: Path) -> dict[str, str]:
    """Return the sha256 of all tensors of a file, with their names and without them.

    Types, shapes and bytes count too.
    """
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


def warmup_steps(package: Path, preset: str) -> int:
    """Return the warm-up of a preset, or the default."""
    tables = tomllib.loads((package / "presets" / f"{preset}.toml").read_text())
    steps: int = tables.get("schedule", {}).get("warmup_steps", DEFAULT_WARMUP)
    return steps


def presets_of(package: Path) -> list[str]:
    """Return the names of all presets of a checkout."""
    names = sorted(path.stem for path in package.rglob("presets/*.toml"))
    return names or sys.exit(f"{package}: no presets/*.toml")


def chosen_presets(package: Path, only: list[str], renamed: dict[str, str]) -> dict[str, str]:
    """Map names in this file to names in the checkout, for the presets in `only`, or for all."""
    existing = presets_of(package)
    known = {renamed.get(name, name): name for names in MAKERS.values() for name in names.split()}
    if unknown := sorted({*only} - {*existing}):
        sys.exit(f"unknown presets: {', '.join(unknown)}; choose among {', '.join(existing)}")
    if dataless := sorted({*(only or existing)} - {*known}):
        sys.exit(
            f"no data for the presets {', '.join(dataless)}: add them to MAKERS, or give --renamed old=new"
        )
    for name in [] if only else sorted({*known} - {*existing}):
        print(f"{name}: the checkout has no such preset", file=sys.stderr)
    return {known[name]: name for name in only or existing}


def machine(package: Path) -> dict[str, str]:
    """Return the facts that weights depend on: processor, torch, and commit (with + after changes)."""
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
    """Train all presets, two at a time, and return their hashes. Failures end the program after all runs."""
    golden: dict[str, dict[str, Any]] = {}
    failures = []
    with tempfile.TemporaryDirectory(prefix="goldens-") as folder, ThreadPoolExecutor(2) as pool:
        training = TrainingFolder(Path(folder), package)
        submitted = [(job.title, pool.submit(training.train, job)) for job in training.jobs(presets)]
        for title, future in submitted:
            try:
                golden[title] = future.result()
            except CommandFailedError as failure:
                failures.append(f"{title}: {failure}")
    if failures:
        sys.exit(
            f"{len(failures)} of {len(submitted)} failed, and nothing is written:\n" + "\n".join(failures)
        )
    return dict(sorted(golden.items()))


def resumed_equal(golden: dict[str, dict[str, Any]]) -> bool:
    """Print for each resumed run whether it equals the run that was not stopped; return whether all do."""
    resumed = [name for name in golden if name.startswith(RESUMED)]
    are_equal = {name: golden[name] == golden[name.removeprefix(RESUMED)] for name in resumed}
    for name, equal in are_equal.items():
        comparison = "equal to" if equal else "DIFFERENT from"
        print(f"{name}: {comparison} the run that was not stopped", file=sys.stderr)
    return all(are_equal.values())


def compare(old: dict[str, Any], new: dict[str, Any], renamed: dict[str, str]) -> bool:
    """Print what is equal and what differs. Return whether all is equal and nothing is missing."""
    for fact, value in old.pop("machine").items():
        print(f"{fact:22} {value} | {new['machine'][fact]}")
    new.pop("machine")
    verdicts: dict[str, str] = {}
    for name, golden in old.items():
        preset = name.removeprefix(RESUMED)
        new_name = name.removesuffix(preset) + renamed.get(preset, preset)
        verdicts[f"{name} = {new_name}" if name != new_name else name] = verdict(
            golden, new.pop(new_name, None)
        )
    verdicts |= dict.fromkeys(new, "missing in the old file")
    for name, text in verdicts.items():
        print(f"{name:22} {text}")
    equal = sum(text == EQUAL for text in verdicts.values())
    print(f"{equal} of {len(verdicts)} equal")
    return equal == len(verdicts)


def verdict(old: dict[str, Any], new: dict[str, Any] | None) -> str:
    """Return in words whether two goldens are equal, or what differs."""
    if new is None:
        return "missing in the new file"
    if old == new:
        return EQUAL
    return "DIFFERENT in " + ", ".join(
        fact for fact in sorted({*old, *new}) if old.get(fact) != new.get(fact)
    )


def parse_options() -> argparse.Namespace:
    """Parse the options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", nargs="?", type=Path, metavar="OUT.json", help="file to write")
    parser.add_argument("--only", default="", metavar="A,B", help="presets by their names in the checkout")
    parser.add_argument("--renamed", default="", metavar="OLD=NEW,...", help="new names of presets")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("OLD.json", "NEW.json"))
    options = parser.parse_args()
    if (options.out is None) == (options.compare is None):
        parser.error("give either OUT.json or --compare OLD.json NEW.json")
    try:
        options.renamed = dict(pair.split("=") for pair in filter(None, options.renamed.split(",")))
    except ValueError:
        parser.error("--renamed: give OLD=NEW, several separated by commas")
    return options


def main() -> None:
    options = parse_options()
    if options.compare:
        old, new = (json.loads(path.read_text()) for path in options.compare)
        raise SystemExit(not compare(old, new, options.renamed))
    spec = find_spec("foveal")
    if spec is None or spec.origin is None:
        sys.exit("no foveal: set PYTHONPATH to a checkout")
    package = Path(spec.origin).resolve().parent
    presets = chosen_presets(package, [*filter(None, options.only.split(","))], options.renamed)
    start = time.monotonic()
    golden = train_all(package, presets)
    options.out.write_text(json.dumps({"machine": machine(package)} | golden, indent=1) + "\n")
    print(f"{len(golden)} runs in {time.monotonic() - start:.0f} s", file=sys.stderr)
    raise SystemExit(not resumed_equal(golden))


if __name__ == "__main__":
    main()
