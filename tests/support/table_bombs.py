"""Small files of texts, series and clips that would take very much memory or time."""

import gzip
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet

MIB = 1 << 20


def repeated(cell: str | bytes, count: int) -> pyarrow.DictionaryArray:
    return pyarrow.DictionaryArray.from_arrays(np.zeros(count, np.int32), [cell])


def parquet(path: Path, **columns: object) -> None:
    """Write every different cell once, as other programs may, and as columns of texts."""
    table = pyarrow.table(columns)
    pyarrow.parquet.write_table(table, path, dictionary_pagesize_limit=1 << 30, store_schema=False)


def repeated_texts(path: Path) -> None:
    parquet(path, text=repeated("a" * (16 * MIB), 200), label=["x", "y"] * 100)


def repeated_words(path: Path) -> None:
    offsets = np.arange(0, 1801, 90, dtype=np.int32)
    tokens = pyarrow.ListArray.from_arrays(offsets, repeated("a" * MIB, 1800))
    parquet(path, tokens=tokens, tags=[["x"] * 90] * 20)


def repeated_images(path: Path) -> None:
    content = pyarrow.StructArray.from_arrays([repeated(bytes(16 * MIB), 200)], ["bytes"])
    parquet(path, image=content, label=["x", "y"] * 100)


def many_equal_rows(path: Path) -> None:
    cells = pyarrow.repeat("a", 20_000_000)
    pyarrow.parquet.write_table(pyarrow.table({"text": cells, "label": cells}), path)


def series(path: Path) -> None:
    np.savez_compressed(path, x=np.zeros((2, 20 * MIB, 1)), y=np.arange(2))


def clips(path: Path) -> None:
    np.savez_compressed(path, clips=np.zeros((2, 5, 3_000, 3_000), np.uint8), label=np.arange(2))


def no_values(path: Path) -> None:
    np.savez(path, x=np.zeros((1 << 40, 0, 1)), y=np.arange(2))


def packed(path: Path) -> None:
    path.write_bytes(gzip.compress(b"a" * (70 * MIB), 1))


def packed_pairs(path: Path) -> None:
    """Both files of a pair: `a.gz,b.gz`."""
    for name in path.name.split(","):
        packed(path.with_name(name))


def zipped(*names: str) -> Callable[[Path], None]:
    """Write a zip whose last member is the bomb."""

    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for name in names:
                row = b'{"file_name": "a/fine.png"}\n'
                archive.writestr(name, row * (3 * MIB if name == names[-1] else 1))

    return write


def deep(path: Path) -> None:
    path.write_text('{"text": ' + "[" * 100_000 + "]" * 100_000 + "}\n")


def deep_enough_to_be_read(path: Path) -> None:
    """JSON that Python reads, and can't write again further inside the program."""
    row = {"text": "a", "label": "b", "more": json.loads("[" * 900 + "]" * 900)}
    path.write_text(f"{json.dumps(row)}\n")


BOMBS: dict[str, Callable[[Path], object]] = {
    "texts.parquet": repeated_texts,
    "words.parquet": repeated_words,
    "images.parquet": repeated_images,
    "equal rows.parquet": many_equal_rows,
    "series.npz": series,
    "clips.npz": clips,
    "no values.npz": no_values,
    "a.txt.gz": packed,
    "b.csv.gz": packed,
    "c.en.gz,c.de.gz": packed_pairs,
    "metadata.zip": zipped("a/fine.png", "metadata.jsonl"),
    "texts.zip": zipped("a/a.txt", "b/b.txt"),
    "deep.jsonl": deep,
    "deep.json": deep,
    "deep enough.jsonl": deep_enough_to_be_read,
}
