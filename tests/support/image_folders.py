"""Folders and zips of small random images."""

import io
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SIDE = 8


def random_images(count: int, seed: int = 0, side: int = SIDE) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (count, side, side, 3), np.uint8)


def encode_png(picture: NDArray[np.uint8]) -> bytes:
    out = io.BytesIO()
    Image.fromarray(picture).save(out, "PNG")
    return out.getvalue()


def images_by_class(count: int, seed: int = 0, labels: str = "ab") -> dict[str, bytes]:
    """Return the files of a folder per class, by name."""
    return {
        f"{labels[n % len(labels)]}/{n:03}.png": encode_png(picture)
        for n, picture in enumerate(random_images(count, seed))
    }


def write_files(path: Path, files: dict[str, bytes]) -> str:
    """Write the files to a folder or a zip."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
    else:
        path.mkdir(exist_ok=True)
        for name, content in files.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(content)
    return str(path)


CONTAINERS = ["photos", "photos.zip"]
