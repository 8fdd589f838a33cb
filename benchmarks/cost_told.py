"""Train presets of several kinds, and compare the memory and the time told with those that were taken.

    python -m benchmarks.cost_told                                   # all, one at a time
    python -m benchmarks.cost_told --only lstm,captioning --budget 2m

The data are drawn like those of benchmarks/goldens.py, but there are more of them, of very different lengths.
Time left is compared from a tenth of the whole time on.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile

from benchmarks import goldens


def texts(count: int) -> list[str]:
    """Return random texts of 3 to about 60 words."""
    pool = goldens.sentences(6 * count)
    return [" ".join(pool[6 * row : 6 * row + 1 + row % 6]) for row in range(count)]


def write_text(folder: Path) -> str:
    return goldens.write_text(folder, 9000)


def write_pairs(folder: Path) -> str:
    rows = (f"{text}\t{text[::-1].upper()}\n" for text in texts(3000))
    (folder / "pairs.tsv").write_text("source\ttarget\n" + "".join(rows))
    return "pairs.tsv"


def write_labels(folder: Path) -> str:
    rows = (f"{text},{'open' if text[-1] in 'ae' else 'closed'}\n" for text in texts(3000))
    (folder / "labels.csv").write_text("text,label\n" + "".join(rows))
    return "labels.csv"


def write_tags(folder: Path) -> str:
    rows = [
        {"tokens": text.split(), "tags": [f"T{len(word)}" for word in text.split()]} for text in texts(2000)
    ]
    goldens.write_rows(folder / "tags.jsonl", rows)
    return "tags.jsonl"


def write_images(folder: Path) -> str:
    return goldens.write_classes(folder, 900)


def write_captions(folder: Path) -> str:
    rows = ["file_name,text"]
    for number, (scene, text) in enumerate(zip(goldens.scenes(300, 64, 8), texts(300), strict=True)):
        scene.image.save(folder / f"{number}.png")
        rows.append(f"{number}.png,a {scene.color} {scene.shape} {text}")
    (folder / "metadata.csv").write_text("\n".join(rows) + "\n")
    return "."


def write_sounds(folder: Path) -> str:
    for number, (name, wave) in enumerate(goldens.tones(400)):
        (folder / name).mkdir(exist_ok=True)
        soundfile.write(folder / name / f"{number}.wav", wave, goldens.RATE)
    return "."


def write_series(folder: Path) -> str:
    generator, rows = np.random.default_rng(4), []
    for number in range(600):
        values = generator.normal(size=(int(generator.integers(20, 300)), 2))
        values[:, 0] += np.linspace(0, 9, len(values)) * (1 if number % 2 else -1)
        rows.append({"values": values.round(3).tolist(), "label": ("down", "up")[number % 2]})
    goldens.write_rows(folder / "series.jsonl", rows)
    return "series.jsonl"


WRITERS = {
    "translation": write_pairs,
    "transduction": write_pairs,
    "lstm": write_text,
    "demo": write_text,
    "text-classification": write_labels,
    "text-ngrams": write_labels,
    "word-tagging": write_tags,
    "image-classification": write_images,
    "vit": write_images,
    "patch-similarities": write_images,
    "captioning": write_captions,
    "audio-classification": write_sounds,
    "series-classification": write_series,
    "minirocket": write_series,
}
"""The functions that write the data of presets."""
LEFT_FROM = 0.1
"""Fraction of the whole time after which the time left is compared."""


@dataclass
class Cost:
    """What a training told, and what it took."""

    memory_told: float
    memory: float
    left: list[tuple[float, float]]
    """Times and the time left told at each."""
    seconds: float

    @property
    def memory_error(self) -> float:
        return self.memory_told / self.memory - 1

    @property
    def time_error(self) -> float:
        """The largest relative error of the time left."""
        late = [(at, left) for at, left in self.left if at >= LEFT_FROM * self.seconds]
        errors = [left / (self.seconds - at) - 1 for at, left in late if at < 0.95 * self.seconds]
        return max(errors, key=abs, default=0.0)


def to_seconds(text: str) -> float:
    """Return the seconds of a duration as it is shown."""
    if text.endswith(" s"):
        return 0.5 if text.startswith("under") else float(text.removesuffix(" s"))
    parts = [int(part) for part in text.split(":")]
    return float(sum(part * 60**power for power, part in enumerate(reversed(parts))))


def train(preset: str, data: str, folder: Path, budget: str) -> Cost:
    """Train a preset, and return its cost.

    Raises: RuntimeError: the training failed.
    """
    command = [sys.executable, "-m", "foveal", "train", data, "--model", preset, "--run", f"run-{preset}"]
    closed_form = "0steps" if preset in ("minirocket", "patch-similarities", "text-ngrams") else budget
    started, lines, left = time.monotonic(), list[str](), list[tuple[float, float]]()
    with subprocess.Popen(
        [*command, "--budget", closed_form], cwd=folder, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line)
            if found := re.search(r"  (\S+(?: 1)?(?: s)?) left$", line.rstrip()):
                left.append((time.monotonic() - started, to_seconds(found[1])))
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    told = re.search(r"about ([\d.]+) (GB|MB) ", "".join(lines))
    if process.returncode or told is None:
        raise RuntimeError(f"{preset}: failed:\n{''.join(lines)}")
    memory_told = float(told[1]) * {"GB": 1e9, "MB": 1e6}[told[2]]
    return Cost(memory_told, 1024.0 * usage.ru_maxrss, left, time.monotonic() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(WRITERS), help="presets, with commas between them")
    parser.add_argument("--budget", default="60s", help="the budget of each training")
    options = parser.parse_args()
    print(
        "| preset | memory told | peak | | time left, largest error | whole time |\n|---|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as name:
        for preset in options.only.split(","):
            folder = Path(name, preset)
            (folder / "data").mkdir(parents=True)
            data = f"data/{WRITERS[preset](folder / 'data')}"
            cost = train(preset, data, folder, options.budget)
            memory = (
                f"{cost.memory_told / 1e6:.0f} MB | {cost.memory / 1e6:.0f} MB | {cost.memory_error:+.0%}"
            )
            print(f"| {preset} | {memory} | {cost.time_error:+.0%} | {cost.seconds:.0f} s |", flush=True)


if __name__ == "__main__":
    main()
