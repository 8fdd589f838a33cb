"""Bombs that are no pictures: arrays and zips that lie about their size, or hold more than pictures."""

import gzip
import io
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.support.image_bytes import encode_image, gradient_image

LABELS = np.arange(2)
CANARY = "sprung"
"""A file beside the bomb that is there if what is in it has been run."""


class Trap:
    def __init__(self, folder: Path) -> None:
        self.canary = folder / CANARY

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.canary,)


def arrays(path: Path, **members: bytes) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)


def array(head: str, data: bytes = bytes(99)) -> bytes:
    """Return an .npy file with this header."""
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head) + 1) + head.encode() + b"\n" + data


def saved(values: object) -> bytes:
    out = io.BytesIO()
    np.save(out, np.asarray(values))
    return out.getvalue()


def objects(path: Path) -> None:
    kind = "{'descr': '|O', 'fortran_order': False, 'shape': (2,)}"
    arrays(path, images=array(kind, pickle.dumps([Trap(path.parent)] * 2)), labels=saved(LABELS))


def only_pickle(path: Path) -> None:
    arrays(path, images=pickle.dumps(Trap(path.parent)), labels=saved(LABELS))


def labels_of_objects(path: Path) -> None:
    kind = "{'descr': '|O', 'fortran_order': False, 'shape': (2,)}"
    arrays(path, images=saved(np.zeros((2, 9, 9))), labels=array(kind, pickle.dumps([Trap(path.parent)] * 2)))


def lying_head(path: Path) -> None:
    head = "{'descr': '|u1', 'fortran_order': False, 'shape': (1000000, 1000, 1000)}"
    arrays(path, images=array(head), labels=saved(LABELS))


def deep_head(path: Path) -> None:
    arrays(path, images=array("{'descr': '|u1', 'shape': " + "(" * 9_000), labels=saved(LABELS))


def packed_zeros(path: Path) -> None:
    np.savez_compressed(path, images=np.zeros((2, 7_000, 7_000), np.uint8), labels=LABELS)


def long_labels(path: Path) -> None:
    head = "{'descr': '<U900000000', 'fortran_order': False, 'shape': (2,)}"
    arrays(path, images=saved(np.zeros((2, 9, 9))), labels=array(head))


def idx(*sides: int) -> bytes:
    return bytes([0, 0, 8, len(sides)]) + struct.pack(f">{len(sides)}I", *sides)


def beside(path: Path) -> None:
    name = path.name.replace("images-idx3", "labels-idx1").removesuffix(".gz")
    path.with_name(name).write_bytes(idx(2) + bytes(2))


def lying_idx(path: Path) -> None:
    beside(path)
    path.write_bytes(idx(2**31, 28, 28) + bytes(99))


def packed_idx(path: Path) -> None:
    beside(path)
    path.write_bytes(gzip.compress(idx(2, 7_000, 7_000) + bytes(98_000_000), 1))


def photos(path: Path, name: str, content: bytes) -> None:
    """Write a zip with a picture in each of two classes. The second picture is `content`."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/fine.png", encode_image(gradient_image()))
        archive.writestr(f"b/{name}", content)


def tight(path: Path) -> None:
    photos(path, "tight.bmp", b"BM" + bytes(100 << 20))


def says(size: int, path: Path) -> None:
    """Return the size of a member that the directory of the zip claims."""
    photos(path, "bomb.bmp", b"BM" + bytes(90 << 20))
    content = bytearray(path.read_bytes())
    at = content.rindex(b"PK\1\2") + 24
    content[at : at + 4] = struct.pack("<I", size)
    path.write_bytes(content)


def zip_in_a_zip(path: Path) -> None:
    tight(path)
    photos(path, "zip.png", path.read_bytes())


SETS: dict[str, Callable[[Path], object]] = {
    "objects.npz": objects,
    "pickle.npz": only_pickle,
    "labels of objects.npz": labels_of_objects,
    "head.npz": lying_head,
    "deep head.npz": deep_head,
    "zeros.npz": packed_zeros,
    "long labels.npz": long_labels,
    "train-images-idx3-ubyte": lying_idx,
    "train-images-idx3-ubyte.gz": packed_idx,
    "tight.zip": tight,
    "says too much.zip": lambda path: says(2**31, path),
    "says too little.zip": lambda path: says(99, path),
    "zip in a zip.zip": zip_in_a_zip,
}
