"""Small real data for each task, from the files in the folder that FOVEAL_DATA names.

The names of the columns are those that the settings `data.*` have by default. Questions and maps are drawn.
"""

import csv
import gzip
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from numpy.typing import NDArray
from PIL import Image

from benchmarks.goldens import write_maps, write_rows

LANGUAGES = ("en", "de", "fr")
HOP, WINDOW, RATE = 80, 200, 8000
"""Steps and windows of 10 and 25 ms in the recordings."""
Recording = tuple[str, NDArray[np.float64]]


def write_text(data: Path, folder: Path) -> str:
    text = (data / "tinyshakespeare.txt").read_text(encoding="utf-8")
    (folder / "plays.txt").write_text(text[:60_000], encoding="utf-8")
    return "plays.txt"


def lines(data: Path, language: str, count: int) -> list[str]:
    with gzip.open(data / "multi30k" / f"train.{language}.gz", "rt", encoding="utf-8") as file:
        return [line.strip() for line in islice(file, count)]


def write_pairs(data: Path, folder: Path) -> str:
    pairs = zip(lines(data, "en", 300), lines(data, "de", 300), strict=True)
    write_rows(folder / "pairs.jsonl", [{"source": source, "target": target} for source, target in pairs])
    return "pairs.jsonl"


def sentences(data: Path, count: int) -> Iterator[str]:
    text = (data / "ud_english_ewt_dev.conllu").read_text(encoding="utf-8")
    return islice(text.split("\n\n"), count)


def write_tags(data: Path, folder: Path) -> str:
    (folder / "tags.conllu").write_text("\n\n".join(sentences(data, 200)) + "\n\n", encoding="utf-8")
    return "tags.conllu"


def write_strings(data: Path, folder: Path) -> str:
    """Write short sentences, to their tags."""
    rows = []
    for sentence in sentences(data, 600):
        cells = [line.split("\t") for line in sentence.splitlines() if line[:1].isdigit()]
        words, tags = [row[1] for row in cells], [row[3] for row in cells]
        rows += [{"source": " ".join(words), "target": " ".join(tags)}] if len(words) < 9 else []
    write_rows(folder / "strings.jsonl", rows)
    return "strings.jsonl"


def write_labels(data: Path, folder: Path) -> str:
    """Write sentences with their language."""
    rows = [{"text": line, "label": name} for name in LANGUAGES for line in lines(data, name, 100)]
    write_rows(folder / "languages.jsonl", rows)
    return "languages.jsonl"


def recordings(data: Path, count: int) -> Iterator[Recording]:
    """Yield spoken digits, each with its name."""
    with zipfile.ZipFile(data / "free_spoken_digits.zip") as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".wav"))
        for name in names[:: max(1, len(names) // count)][:count]:
            wave, _ = soundfile.read(io.BytesIO(archive.read(name)))
            yield Path(name).name[0], wave


def frames(wave: NDArray[np.float64], channels: int = 3) -> NDArray[np.float64]:
    """Return the logarithm of the energy in each band of each frame."""
    windows = np.lib.stride_tricks.sliding_window_view(wave, WINDOW)[::HOP]
    bands = np.array_split(np.abs(np.fft.rfft(windows * np.hanning(WINDOW))), channels, axis=1)
    return np.stack([np.log(1e-4 + band.mean(1)) for band in bands], 1)


def loudness(wave: NDArray[np.float64]) -> list[str]:
    """Return whether each frame is loud or quiet."""
    energy = frames(wave, 1)[:, 0]
    return ["loud" if value > energy.mean() else "quiet" for value in energy]


def write_recordings(data: Path, folder: Path) -> str:
    """Write recordings with a text, a label, and a label for each frame."""
    rows = []
    for number, (name, wave) in enumerate(recordings(data, 150)):
        soundfile.write(folder / f"{number}.wav", wave, RATE)
        rows.append({"file_name": f"{number}.wav", "label": name, "text": name, "labels": loudness(wave)})
    write_rows(folder / "metadata.jsonl", rows)
    return "."


def write_series(data: Path, folder: Path) -> str:
    """Write energies in bands, with a label for each series."""
    named = [(name, frames(wave)) for name, wave in recordings(data, 150)]
    x, lengths = np.concatenate([values for _, values in named]), [len(values) for _, values in named]
    np.savez(folder / "series.npz", x=x, y=np.array([name for name, _ in named]), lengths=np.array(lengths))
    return "series.npz"


def write_steps(data: Path, folder: Path) -> str:
    """Write energies in bands, with a label for each step."""
    waves = [wave for _, wave in recordings(data, 150)]
    x, y = (
        np.concatenate([frames(wave) for wave in waves]),
        np.concatenate([loudness(wave) for wave in waves]),
    )
    np.savez(folder / "steps.npz", x=x, y=y, lengths=np.array([len(frames(wave)) for wave in waves]))
    return "steps.npz"


def write_described_series(data: Path, folder: Path) -> str:
    rows = [{"values": frames(wave).round(3).tolist(), "text": name} for name, wave in recordings(data, 150)]
    write_rows(folder / "series.jsonl", rows)
    return "series.jsonl"


def photos(data: Path, count: int, every: int = 1) -> Iterator[tuple[str, Image.Image]]:
    """Yield photos of 32 x 32 pixels with their class, the classes in turn, or `every` so many of them."""
    with zipfile.ZipFile(data / "cifar10.zip") as archive:
        names = sorted(
            name for name in archive.namelist() if name.startswith("train/") and name.endswith("jpg")
        )
        classes = sorted({name.split("/")[1] for name in names})
        by_class = [[name for name in names if f"/{each}/" in name] for each in classes[::every]]
        for number in range(count):
            name = by_class[number % len(by_class)][number // len(by_class)]
            yield name.split("/")[1], Image.open(io.BytesIO(archive.read(name)))


def write_images(data: Path, folder: Path) -> str:
    """Write airplanes and frogs, which a network can tell apart after a few steps."""
    for number, (name, image) in enumerate(photos(data, 300, every=6)):
        (folder / name).mkdir(exist_ok=True)
        image.save(folder / name / f"{number}.png")
    return "."


def write_captions(data: Path, folder: Path) -> str:
    with zipfile.ZipFile(data / "emoji_captions.zip") as archive:
        table = [*csv.DictReader(io.StringIO(archive.read("metadata.csv").decode("utf-8")))]
        rows = [{"file_name": Path(row["file_name"]).name, "text": row["text_en"]} for row in table[::20]]
        for row, source in zip(rows, table[::20], strict=True):
            (folder / row["file_name"]).write_bytes(archive.read(source["file_name"]))
    write_rows(folder / "metadata.jsonl", rows)
    return "."


def write_questions(data: Path, folder: Path) -> str:
    """Write photos with questions about their class."""
    rows: list[dict[str, Any]] = []
    named = [*photos(data, 120)]
    choices = sorted({name for name, _ in named})
    for number, (name, image) in enumerate(named):
        image.save(folder / f"{number}.png")
        shared = {"file_name": f"{number}.png", "choices": choices}
        rows.append(shared | {"question": "what is it?", "answer": name, "history": ""})
        history = f"what is it? {name}."
        rows.append(shared | {"question": "is it that?", "answer": name, "history": history})
    write_rows(folder / "metadata.jsonl", rows)
    return "."


def write_clips(data: Path, folder: Path) -> str:
    """Write clips of photos that move, with a label, a label for each frame, and a text."""
    steps = {"right": (0, 3), "left": (0, -3), "down": (3, 0), "up": (-3, 0)}
    clips, labels = [], []
    for number, (_, image) in enumerate(photos(data, 120)):
        name = [*steps][number // 10 % len(steps)]
        pixels = np.asarray(image.convert("L"))
        shift = steps[name]
        clips.append([np.roll(pixels, (shift[0] * time, shift[1] * time), (0, 1)) for time in range(5)])
        labels.append(name)
    each = np.array([["still", *[name] * 4] for name in labels])
    texts = np.array([f"it moves {name}" for name in labels])
    lengths = np.full(len(clips), 5)
    pixels = np.array(clips, np.uint8)
    np.savez(
        folder / "clips.npz", clips=pixels, label=np.array(labels), labels=each, text=texts, lengths=lengths
    )
    return "clips.npz"


WRITERS: dict[str, Callable[[Path, Path], str]] = {
    "audio-classification": write_recordings,
    "audio-tagging": write_recordings,
    "bidirectional-lm": write_text,
    "captioning": write_captions,
    "frame-tagging": write_clips,
    "glimpses": write_images,
    "image-classification": write_images,
    "image-generation": write_images,
    "language-model": write_text,
    "masked-lm": write_text,
    "navigation": lambda _, folder: write_maps(folder),
    "permutation-lm": write_text,
    "series-captioning": write_described_series,
    "series-classification": write_series,
    "series-tagging": write_steps,
    "speech-recognition": write_recordings,
    "tagging": write_tags,
    "text-classification": write_labels,
    "transduction": write_strings,
    "translation": write_pairs,
    "video-captioning": write_clips,
    "video-classification": write_clips,
    "vqa": write_questions,
    "vqa-generate": write_questions,
    "vqa-multiple-choice": write_questions,
}
"""What writes data for a task into a folder, and returns the path to train on there."""


def task_data(task: str, data: Path, folder: Path) -> Path | None:
    """Return the path of the data of a task below `folder`, written if need be; None if the task has none."""
    write = WRITERS.get(task)
    if write is None:
        return None
    written = folder / task / "written.json"
    if not written.exists():
        written.parent.mkdir(parents=True, exist_ok=True)
        inside = written.parent / "data"
        inside.mkdir(exist_ok=True)
        written.write_text(json.dumps(write(data, inside)))
    return (written.parent / "data" / json.loads(written.read_text())).resolve()
