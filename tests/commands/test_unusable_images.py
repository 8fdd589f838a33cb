"""Images that can't be learnt from or answered: one line says which, and nothing is left behind."""

import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from PIL import Image

from foveal.data.images import image_rows
from foveal.data.images.image_decoding import IMAGE_SUFFIXES
from tests.support.command_line import (
    predictions,
    refuse,
    relative_paths,
    run_command,
    succeed,
)
from tests.support.labeled_images import SMALL, write_images

TWO = (*SMALL, "--budget", "2steps")
pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    """A run that tells red from blue."""
    folder = tmp_path_factory.mktemp("learnt")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOVEAL_CACHE", str(cache))
        patch.chdir(folder)
        succeed("train", write_images(), *SMALL, "--budget", "30steps", "--run", "learnt")
    return folder / "learnt"


def classes(folder: str, *names: str) -> Path:
    for name in (".", *names):
        Path(folder, name).mkdir(parents=True, exist_ok=True)
    return Path(folder)


def zipped(name: str, *files: str) -> None:
    with zipfile.ZipFile(name, "w") as archive:
        for file in files:
            archive.write(file)


def nothing() -> None:
    classes("data")


def classes_of_nothing() -> None:
    classes("data", "a", "b")


def one_class() -> None:
    shutil.move(write_images("all") + "/red", classes("data"))


def rows_without_images() -> None:
    rows = "".join(f"{number}.png,{'ab'[number % 2]}\n" for number in range(9))
    Path(classes("data"), "metadata.csv").write_text(f"file_name,label\n{rows}")


def texts() -> None:
    classes("data", "a", "b")
    for name in ("a/1.jpg", "b/2.png", "b/3.gif"):
        Path("data", name).write_text("a photo of a cat")


def folders_called_pictures() -> None:
    classes("data", "a/1.jpg", "b/2.png")


def a_line_end_in_a_label() -> None:
    Path(write_images("data", 20), "red").rename("data/r\ned")


def nulls() -> None:
    column = pyarrow.array([None] * 8, pyarrow.binary())
    pyarrow.parquet.write_table(pyarrow.table({"image": column, "label": [0, 1] * 4}), "data.parquet")


def an_empty_zip() -> None:
    zipped("data.zip")


UNLEARNT: dict[Callable[[], None], str] = {
    nothing: "data: no metadata.csv or metadata.jsonl in it (columns file_name, label), nor a folder of",
    classes_of_nothing: "no usable row, the first is a: a folder of a label without files; fill it",
    one_class: "have the label 'red': at least two classes are needed",
    rows_without_images: "the first is line 2: no such file: 0.png; fix the name or leave the row out",
    texts: "3 can't be used, the first: data, a/1.jpg: not an image that can be read",
    folders_called_pictures: "a folder of a label without files",
    a_line_end_in_a_label: "have the label 'blue'",
    nulls: "the first is row 1: 'image' has neither the bytes nor the file of an image; save",
    an_empty_zip: "data.zip: a zip without files",
}


@pytest.mark.parametrize("made", UNLEARNT)
def test_nothing_to_learn_from(made: Callable[[], None]) -> None:
    made()
    (data,) = Path().glob("data*")
    assert UNLEARNT[made] in refuse("train", data, "--task", "image-classification", *TWO, "--run", "run")
    refuse("train", data, *TWO, "--run", "run")  # whatever is seen in it


UNANSWERED: dict[Callable[[], None], str] = {
    nothing: f"data: no images in it ({', '.join(IMAGE_SUFFIXES)}); give others, or rename them",
    classes_of_nothing: "no images in it",
    texts: "a/1.jpg: not an image that can be read (JPEG, PNG, GIF, BMP, WEBP, TIFF, PPM); convert it",
    folders_called_pictures: "no images in it",
    nulls: "'image' has neither the bytes nor the file of an image",
    an_empty_zip: "data.zip: a zip without files",
}


@pytest.mark.parametrize("made", UNANSWERED)
def test_nothing_to_answer(made: Callable[[], None], learnt: Path) -> None:
    made()
    (data,) = Path().glob("data*")
    before = relative_paths(learnt)
    assert UNANSWERED[made] in refuse("predict", learnt, data)
    assert relative_paths(learnt) == before


def test_one_picture_that_is_none(learnt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("text.jpg").write_text("a photo of a cat")
    assert "text.jpg: not an image that can be read" in refuse("predict", learnt, "text.jpg")
    classes("folder.jpg")
    assert "folder.jpg: no images in it" in refuse("predict", learnt, "folder.jpg")
    assert "none.jpg: can't read: No such file" in refuse("predict", learnt, "none.jpg")
    Path("loop.jpg").symlink_to("loop.jpg")
    assert "loop.jpg: can't read: " in refuse("predict", learnt, "loop.jpg")
    os.mkfifo("pipe.jpg")
    assert "pipe.jpg: can't read: " in refuse("predict", learnt, "pipe.jpg")
    os.mkfifo(classes("pipes") / "1.jpg")
    assert "pipes/1.jpg: neither a file nor a folder; remove it" in refuse("predict", learnt, "pipes")
    Path("secret.jpg").write_bytes(b"a secret")
    usual = Path.open

    def guarded(path: Path, *arguments: Any, **named: Any) -> IO[Any]:
        if path.name == "secret.jpg":
            raise PermissionError(13, "Permission denied", str(path))
        return usual(path, *arguments, **named)

    monkeypatch.setattr(Path, "open", guarded)
    assert "secret.jpg: can't be read: Permission denied; get" in refuse("predict", learnt, "secret.jpg")


def test_other_sizes_and_modes_at_use(learnt: Path) -> None:
    """What was learnt of small pictures in colours is asked of any."""
    red = Image.new("RGB", (1, 1), (200, 50, 40))
    Path("asked").mkdir()
    for number, (side, mode) in enumerate(
        [((1, 1), "RGB"), ((400, 90), "P"), ((7, 300), "CMYK"), ((64, 64), "RGBA")]
    ):
        red.resize(side).convert(mode).save(f"asked/{number}.tif")
    assert [one["output"] for one in predictions(str(learnt), "asked")] == ["red"] * 4
    Image.fromarray(np.full((30, 30), 30_000, np.uint16)).save("grey.tif")
    assert predictions(str(learnt), "grey.tif")[0]["output"] in ("red", "blue")


def test_names_that_are_no_text(learnt: Path) -> None:
    """Line ends, and bytes that are not UTF-8."""
    names = [os.fsdecode(name) for name in (b"new\nline.png", b"\xff\xfe.png", b"fine.png")]
    Path("asked").mkdir()
    for name in names:
        Image.new("RGB", (20, 20), (200, 50, 40)).save(Path("asked", name), "PNG")
    found = predictions(str(learnt), "asked")
    assert [one["source"] for one in found] == [f"asked/{name}" for name in sorted(names)]
    assert {one["output"] for one in found} == {"red"}
    for name in names[:2]:
        assert predictions(str(learnt), f"asked/{name}")[0]["output"] == "red"
        Path("asked", name).write_text("no picture")
        refuse("predict", learnt, f"asked/{name}")
    assert predictions(str(learnt), "asked") == [one for one in found if "fine" in one["source"]]


def test_labels_that_differ_in_case_are_told() -> None:
    write_images("data", 40)
    Path("data/blue").rename("data/RED")
    told = run_command("train", "data", *TWO, "--run", "elsewhere")
    assert told.code == 0
    assert "the labels 'RED' and 'red' differ only in case, and count as 2 classes" in told.err


def test_a_class_without_images_is_skipped() -> None:
    write_images("data", 40)
    classes("data", "green")
    succeed("train", "data", *TWO, "--run", "elsewhere")
    assert "data, green" in Path("elsewhere/skipped.jsonl").read_text()


def test_more_pictures_than_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine would end the process without a word."""
    data = write_images(count=40)
    monkeypatch.setattr(image_rows, "MEMORY_CHECK_BYTES", 12 * 12 * 3 * 10)
    monkeypatch.setattr(image_rows, "free_memory", lambda: image_rows.MIN_FREE_BYTES - 1)
    told = refuse("train", data, *TWO)
    assert "images, which take 0.0 GB; lower data.image.size=12, or give fewer images" in told
    monkeypatch.setattr(image_rows, "free_memory", lambda: image_rows.MIN_FREE_BYTES)
    succeed("train", data, *TWO)
    shutil.rmtree("runs")
