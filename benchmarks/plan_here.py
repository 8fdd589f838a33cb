"""The memory and time that `foveal plan --data` predicts on this machine over those of real trainings.

    FOVEAL_DATA=folder python -m benchmarks.plan_here
    FOVEAL_DATA=folder python -m benchmarks.plan_here --memory      # 25 steps each, no times
    FOVEAL_DATA=folder python -m benchmarks.plan_here --only lstm,vit

Ten configurations are planned, and then trained for two epochs. Memory is the most that the operating system
has counted (`ru_maxrss`), and time that of the steps of the second epoch, from `metrics.jsonl`. The goals are
15 % and 25 %. The data are parts of those in the folder that FOVEAL_DATA names.
"""

import csv
import gzip
import io
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.timing import Measurement, option_parser, report, timed

MEMORY_GOAL, TIME_GOAL = 0.15, 0.25
EPOCHS = 2
STEPS = 25
"""Steps of a training whose memory alone is compared: it grows no more."""
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def text(characters: int) -> Callable[[Path, Path], str]:
    """Return the writer of the beginning of tiny Shakespeare."""

    def write(source: Path, folder: Path) -> str:
        whole = (source / "tinyshakespeare.txt").read_text("utf-8")
        (folder / "play.txt").write_text(whole[:characters], "utf-8")
        return "play.txt"

    return write


def sentences(source: Path, side: str) -> list[str]:
    """Return the first 3,000 sentences of Multi30k in a language."""
    with gzip.open(source / "multi30k" / f"train.{side}.gz", "rt", encoding="utf-8") as lines:
        return [line.strip() for line in islice(lines, 3000)]


def pairs(source: Path, folder: Path) -> str:
    """Write the first 3,000 sentences of Multi30k with their translations."""
    sides = sentences(source, "de"), sentences(source, "en")
    rows = ("\t".join(pair) + "\n" for pair in zip(*sides, strict=True))
    (folder / "pairs.tsv").write_text("source\ttarget\n" + "".join(rows), "utf-8")
    return "pairs.tsv"


def languages(source: Path, folder: Path) -> str:
    """Write sentences of Multi30k with their language."""
    with (folder / "languages.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("text", "label"))
        for side in ("de", "en", "fr"):
            writer.writerows((sentence, side) for sentence in sentences(source, side))
    return "languages.csv"


def tagged(source: Path, folder: Path) -> str:
    """Write the first 800 sentences of the treebank."""
    sentences = (source / "ud_english_ewt_dev.conllu").read_text("utf-8").split("\n\n")
    (folder / "tagged.conllu").write_text("\n\n".join(sentences[:800]) + "\n\n", "utf-8")
    return "tagged.conllu"


def digits(source: Path, folder: Path) -> str:
    """Write 600 spoken digits with their words."""
    rows = ["file_name,text"]
    with zipfile.ZipFile(source / "free_spoken_digits.zip") as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".wav"))
        for name in names[::5]:
            own = Path(name).name
            (folder / own).write_bytes(archive.read(name))
            rows.append(f"{own},{WORDS[int(own[0])]}")
    (folder / "metadata.csv").write_text("\n".join(rows) + "\n")
    return "."


def photos(count: int) -> Callable[[Path, Path], str]:
    """Return the writer of `count` images of CIFAR-10, by class."""

    def write(source: Path, folder: Path) -> str:
        with zipfile.ZipFile(source / "cifar10.zip") as archive:
            names = sorted(n for n in archive.namelist() if n.startswith("train/") and n.endswith(".jpg"))
            for name in names[:: len(names) // count]:
                path = folder / Path(name).parent.name / Path(name).name
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(archive.read(name))
        return "."

    return write


def emoji(source: Path, folder: Path) -> str:
    """Write 500 emoji with their names."""
    with zipfile.ZipFile(source / "emoji_captions.zip") as archive:
        table = csv.DictReader(io.StringIO(archive.read("metadata.csv").decode()))
        rows = [row for row in table if "," not in row["text_en"]][::6][:500]
        for row in rows:
            (folder / Path(row["file_name"]).name).write_bytes(archive.read(row["file_name"]))
    lines = [f"{Path(row['file_name']).name},{row['text_en']}" for row in rows]
    (folder / "metadata.csv").write_text("\n".join(["file_name,text", *lines]) + "\n", "utf-8")
    return "."


CONFIGURATIONS: dict[str, tuple[Callable[[Path, Path], str], tuple[str, ...]]] = {
    "lstm": (text(300_000), ()),
    "attention": (text(200_000), ()),
    "mamba": (text(100_000), ()),
    "masked-lm": (text(200_000), ("data.batch_tokens=2048",)),
    "translation": (pairs, ("data.batch_tokens=2048",)),
    "text-classification": (languages, ()),
    "tagging": (tagged, ()),
    "speech-recognition": (digits, ()),
    "image-classification": (photos(3000), ()),
    "vit": (photos(1000), ("data.image.batch_size=64",)),
    "captioning": (emoji, ()),
    "ngram-lstm": (text(300_000), ()),
    "gru": (text(200_000), ()),
    "conv": (text(200_000), ()),
    "rwkv": (text(100_000), ()),
    "s5": (text(100_000), ()),
    "moe": (text(100_000), ()),
    "translation-gru": (pairs, ()),
    "resnet-18": (photos(1000), ()),
}
"""The data of each preset, and its settings."""


@dataclass
class Comparison:
    """What was predicted of a training, and what it took."""

    memory: tuple[float, float]
    counted: float
    """Bytes of the tensors of a step."""
    seconds: tuple[float, float] | None
    """Of an epoch; None if memory alone is compared."""
    dirty: bool


def compare(preset: str, folder: Path, memory_alone: bool) -> Comparison:
    """Plan a training of a preset, and train it."""
    write, settings = CONFIGURATIONS[preset]
    (folder / "data").mkdir(parents=True)
    data = str(Path("data", write(Path(os.environ["FOVEAL_DATA"]), folder / "data")))
    budget = f"{STEPS}steps" if memory_alone else f"{EPOCHS}epochs"
    with timed() as block:
        planned, _ = run_foveal(folder, "plan", preset, "--data", data, *settings, "--json")
        arguments = (data, "--model", preset, *settings, "--budget", budget, "--run", "run")
        _, peak = run_foveal(folder, "train", *arguments)
    plan = json.loads(planned)
    memory = plan["memory"]["peak"], peak
    tensors = float(sum(plan["memory"]["tensors"].values()))
    if memory_alone:
        return Comparison(memory, tensors, None, block.dirty)
    seconds = plan["seconds"]["epoch_steps"], second_epoch(folder / "run" / "metrics.jsonl")
    return Comparison(memory, tensors, seconds, block.dirty)


def run_foveal(folder: Path, *arguments: str) -> tuple[str, float]:
    """Run a command, and return its output and the most memory that it took.

    Raises: RuntimeError: it failed.
    """
    print("foveal", *arguments, file=sys.stderr, flush=True)
    with (folder / "log").open("w") as log:
        command = [sys.executable, "-m", "foveal", *arguments]
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True)
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError((folder / "log").read_text())
    return output, 1024.0 * usage.ru_maxrss


def second_epoch(metrics: Path) -> float:
    """Return the seconds of the steps of the second epoch."""
    records: list[dict[str, Any]] = [json.loads(line) for line in metrics.read_text().splitlines()]
    steps = [record for record in records if record["kind"] == "step"]
    first = max(record["seconds"] for record in steps if record["epoch"] <= 1)
    return float(steps[-1]["seconds"] - first) / (steps[-1]["epoch"] - 1)


def measurement(title: str, pair: tuple[float, float], notes: list[str]) -> Measurement:
    """Return the first of a pair over the second."""
    result = Measurement(title, pair[0] / pair[1], None, False, notes)
    print(f"{title}: {result.value:.3f}; {'; '.join(notes)}", file=sys.stderr, flush=True)
    return result


def largest_error(what: str, measurements: list[Measurement], goal: float) -> Measurement:
    """Return how far the worst of some ratios is from 1."""
    worst = max(abs(each.value - 1) for each in measurements)
    return Measurement(f"largest error of the predicted {what}", worst, goal, True)


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--only", default=",".join(CONFIGURATIONS), help="presets, with commas between them")
    parser.add_argument("--memory", action="store_true", help="compare the memory alone, in a few steps")
    options = parser.parse_args()
    if "FOVEAL_DATA" not in os.environ:
        parser.error("set FOVEAL_DATA to the folder of the data")
    presets = ["lstm"] if options.quick else options.only.split(",")
    memory, times = list[Measurement](), list[Measurement]()
    with tempfile.TemporaryDirectory() as name:
        for preset in presets:
            result = compare(preset, Path(name, preset), options.memory)
            sizes = "{:,.0f} over {:,.0f} MB".format(*(size / 1e6 for size in result.memory))
            notes = [sizes, f"{result.counted / 1e6:,.0f} MB of tensors"]
            memory.append(measurement(f"{preset}: predicted over measured peak memory", result.memory, notes))
            if result.seconds is not None:
                busy = "beside other work" if result.dirty else "no other work"
                notes = ["{:.1f} over {:.1f} s".format(*result.seconds), busy]
                title = f"{preset}: predicted over measured time of an epoch"
                times.append(measurement(title, result.seconds, notes))
    measurements = [*memory, *times, largest_error("memory", memory, MEMORY_GOAL)]
    measurements += [largest_error("time", times, TIME_GOAL)] if times else []
    report(measurements, options)


if __name__ == "__main__":
    main()
