"""Files that hold many labelled pictures: IDX, NumPy arrays, Parquet; whole, in parts, and damaged."""

import gzip
import io
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from foveal.config import DataConfig, ImageConfig
from foveal.core.errors import UserError
from foveal.data import prepare_examples
from foveal.data.open import open_path
from foveal.tasks.infer import infer_task
from tests.support.pair_formats import IMAGE_LABEL

pyarrow = pytest.importorskip("pyarrow")

SIDE = 8
DATA_FORMAT = IMAGE_LABEL


def levels(count: int, *more: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (count, SIDE, SIDE, *more), np.uint8)


def prepared(data: Path, channels: int = 1, **settings: Any) -> Any:
    config = DataConfig(
        image=ImageConfig(size=SIDE, channels=channels), valid_fraction=0.2, test_fraction=0.2, **settings
    )
    return prepare_examples.prepare_examples(DATA_FORMAT, str(data), None, None, config, print)


def refusal(data: Path, **settings: Any) -> str:
    with pytest.raises(UserError) as caught:
        prepared(data, **settings)
    assert "\n" not in str(caught.value)
    assert str(data) in str(caught.value)
    return str(caught.value)


def check(found: Any, split: str, pictures: NDArray[np.uint8], labels: list[str]) -> None:
    one = getattr(found, split)
    assert one.references == labels
    assert all((one.examples[n].squeeze() == picture.squeeze()).all() for n, picture in enumerate(pictures))


def asked(data: Path, processor: Any) -> int:
    """How many pictures can be asked about."""
    config = DataConfig(image=ImageConfig(size=SIDE, channels=processor.source.channels))
    return len(prepare_examples.read_unlabeled(DATA_FORMAT, str(data), processor, config, print)[1])


def idx(values: NDArray[np.uint8]) -> bytes:
    return bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()


@pytest.mark.parametrize("end", ["", ".gz"])
def test_idx(tmp_path, end):
    """As MNIST is given: four files in a folder, packed or not; or one with its labels beside it."""
    for name, count in (("train", 20), ("t10k", 6)):
        for kind, values in (("images-idx3", levels(count)), ("labels-idx1", np.arange(count) % 3)):
            content = idx(values.astype(np.uint8))
            file = tmp_path / f"{name}-{kind}-ubyte{end}"
            file.write_bytes(gzip.compress(content) if end else content)
    assert open_path(str(tmp_path)).kind == "images"
    found = prepared(tmp_path)
    check(found, "train", levels(20), [str(n % 3) for n in range(20)])
    check(found, "test", levels(6), [str(n % 3) for n in range(6)])
    assert found.valid is None
    assert found.train.sources[4] == f"{tmp_path}/train-images-idx3-ubyte{end}, image 5"
    assert infer_task(open_path(str(tmp_path)), {}).name == "image-classification"
    assert asked(tmp_path, found.processor) == 26
    one = prepared(tmp_path / f"train-images-idx3-ubyte{end}")
    assert sum(map(len, (one.train, one.valid, one.test))) == 20


def test_damaged_idx_is_refused(tmp_path):
    path, labels = tmp_path / "train-images-idx3-ubyte", tmp_path / "train-labels-idx1-ubyte"
    path.write_bytes(idx(levels(20)))
    assert "no train-labels-idx1-ubyte or train-labels-idx1-ubyte.gz beside it" in refusal(path)
    labels.write_bytes(idx(np.zeros(19, np.uint8)))
    assert "20 images, and labels (19,); give one label per image" in refusal(path)
    labels.write_bytes(idx(np.zeros(20, np.uint8)))
    assert "have the label '0': at least two classes" in refusal(path)
    path.write_bytes(idx(levels(0)))
    labels.write_bytes(idx(np.zeros(0, np.uint8)))
    assert "no usable row" in refusal(path)
    path.write_bytes(idx(levels(20)))
    whole = path.read_bytes()
    for content in (whole[:-1], whole[:9], b"", b"hello", whole[:2] + b"\x0d" + whole[3:]):
        path.write_bytes(content)
        assert "cut off" in refusal(path) or "not IDX of bytes" in refusal(path)
    path.write_bytes(whole[:4] + b"\xff" * 12 + whole[16:])
    assert "bytes that claim to be" in refusal(path)
    for content in (gzip.compress(whole)[:-30], gzip.compress(whole)[:12] + b"\xff" * 99):
        path.write_bytes(content)
        assert "cut off or damaged" in refusal(path)


@pytest.mark.parametrize("names", ["x_{} y_{}", "{}_images {}_labels"])
@pytest.mark.parametrize("more", [(), (1,), (3,)])
def test_arrays_in_parts(tmp_path, names, more):
    image, label = names.split()
    arrays: dict[str, Any] = {}
    for part, count in (("train", 20), ("val", 5), ("test", 6)):
        arrays[image.format(part)] = levels(count, *more)
        arrays[label.format(part)] = (np.arange(count) % 3)[:, None]
    np.savez(tmp_path / "a.npz", **arrays)
    assert open_path(str(tmp_path / "a.npz")).kind == "images"
    found = prepared(tmp_path / "a.npz", channels=3 if more == (3,) else 1)
    for part, count in (("train", 20), ("valid", 5), ("test", 6)):
        check(found, part, levels(count, *more), [str(n % 3) for n in range(count)])
    assert asked(tmp_path / "a.npz", found.processor) == 31


def test_arrays_without_parts(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, images=levels(40) / 255, labels=np.array(["cat", "dog"] * 20))
    found = prepared(path)
    assert found.processor.target.labels == ("cat", "dog")
    assert sum(map(len, (found.train, found.valid, found.test))) == 40
    row = int(found.train.sources[3].rsplit(" ", 1)[1]) - 1
    assert (found.train.examples[3][..., 0] == levels(40)[row]).all()


@pytest.mark.parametrize("kind", [np.float32, np.int64])
def test_a_dark_picture_is_read_like_its_neighbours(tmp_path, kind):
    """Also beside one that can't be used."""
    path, pictures = tmp_path / "a.npz", levels(40)
    pictures[:20] //= 255
    images = pictures.astype(kind)
    images[30] = np.nan if kind == np.float32 else -1
    np.savez(path, images=images, labels=np.arange(40) % 2)
    found = prepared(path)
    assert [(row.location, row.reason.split(";")[0]) for row in found.skipped] == [
        (f"{path}, image 31", f"its values go from {images[30].min():g} to {images[30].max():g}")
    ]
    seen = 0
    for part in (found.train, found.valid, found.test):
        for row, name in enumerate(part.sources):
            assert (part.examples[row][..., 0] == pictures[int(name.rsplit(" ", 1)[1]) - 1]).all()
            seen += 1
    assert seen == 39


def test_arrays_that_are_no_pictures(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, images=levels(20), labels=np.eye(20))
    assert "20 images, and labels (20, 20); give one label per image" in refusal(path)
    np.savez(path, images=np.zeros((20, 4)), labels=np.arange(20))
    assert "an array (4,); (height, width)" in refusal(path)
    np.savez(path, images=levels(20))
    assert "no array 'labels' among 'images'" in refusal(path)
    for images, labels in ((5, np.arange(2)), (levels(20), 3), (levels(0), np.arange(0)), (levels(1), b"a")):
        np.savez(path, images=images, labels=labels)
        reasons = ("give one label per image", "has no values", "no usable row")
        assert any(reason in refusal(path) for reason in reasons)
    np.savez(path, images=np.array([{}] * 20), labels=np.arange(20))
    assert "not readable as .npz: Object arrays" in refusal(path)
    np.savez(path, images=levels(20), labels=np.arange(20))
    path.write_bytes(path.read_bytes()[:500])
    assert open_path(str(path)).kind != "images"
    np.savez(path, x=np.zeros((4, 5, 6)), y=np.arange(4))
    assert open_path(str(path)).kind != "images"  # but series


def png(picture: NDArray[np.uint8]) -> bytes:
    out = io.BytesIO()
    Image.fromarray(picture).save(out, "PNG")
    return out.getvalue()


def table(
    path: Path, column: str, values: list[Any], labels: list[Any], names: list[str] | None = None
) -> None:
    made = pyarrow.table({column: values, "label": labels})
    if names:
        notes = {"info": {"features": {"label": {"names": names, "_type": "ClassLabel"}}}}
        made = made.replace_schema_metadata({"huggingface": json.dumps(notes)})
    pyarrow.parquet.write_table(made, path)


@pytest.mark.parametrize("column", ["image", "img"])
def test_parquet(tmp_path, column):
    """As Hugging Face's datasets writes it, with the names of the classes."""
    pytest.importorskip("pyarrow.parquet")
    pictures = levels(20, 3)
    for part in ("train", "test"):
        values = [{"bytes": png(picture), "path": None} for picture in pictures]
        table(tmp_path / f"{part}.parquet", column, values, [0, 1] * 10, ["cat", "dog"])
    assert open_path(str(tmp_path)).kind == "images"
    found = prepared(tmp_path, channels=3)
    check(found, "train", pictures, ["cat", "dog"] * 10)
    check(found, "test", pictures, ["cat", "dog"] * 10)
    assert asked(tmp_path / "test.parquet", found.processor) == 20


def test_parquet_of_bytes_and_what_is_wrong_in_it(tmp_path):
    path = tmp_path / "a.parquet"
    values = [png(picture) for picture in levels(30)]
    table(path, "image", [*values, b"", None, values[0]], ["a", "b"] * 15 + ["a", "a", ""])
    found = prepared(path)
    assert sum(map(len, (found.train, found.valid, found.test))) == 30
    assert [(row.location, row.reason.split(";")[0]) for row in found.skipped] == [
        (f"{path}, row 31", "empty"),
        (f"{path}, row 32", "'image' has neither the bytes nor the file of an image"),
        (f"{path}, row 33", "'label' is empty"),
    ]
    assert "no column 'kind' among 'image', 'label'" in refusal(path, label="kind")
    table(path, "image", [{"bytes": None, "path": "a.png"}] * 3, [0, 1, 7], ["cat", "dog"])
    assert "'image' has neither the bytes nor the file of an image" in refusal(path)
    table(path, "image", [{"bytes": value} for value in values], [0, 1, 7] * 10, ["cat", "dog"])
    assert "'label' is 7, and there are 2 classes" in {
        row.reason.split(";")[0] for row in prepared(path).skipped
    }


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_a_table_of_files(tmp_path, suffix):
    """Named from its folder on; what is not there, or no name, is skipped."""
    pictures = levels(20, 3)
    (tmp_path / "photos").mkdir()
    for number, picture in enumerate(pictures):
        (tmp_path / f"photos/{number}.png").write_bytes(png(picture))
    rows = [(f"photos/{number}.png", ("cat", "dog")[number % 2]) for number in range(20)]
    rows += [("photos/99.png", "cat"), ("", "cat")]
    path, between = tmp_path / f"a{suffix}", "," if suffix == ".csv" else "\t"
    lines = [json.dumps({"image": image, "label": label}) for image, label in rows]
    if suffix != ".jsonl":
        lines = [f"image{between}label", *(between.join(row) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    assert open_path(str(path)).kind == "images"
    assert infer_task(open_path(str(path)), {}).name == "image-classification"
    found = prepared(path, channels=3)
    assert sum(map(len, (found.train, found.valid, found.test))) == 20
    assert [row.reason.split(";")[0].split(":")[0] for row in found.skipped] == [
        "no such file",
        "'image' has neither the bytes nor the file of an image",
    ]
    assert asked(path, found.processor) == 20


def test_a_table_of_texts_with_an_image_somewhere_is_none_of_pictures(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"text": "a", "image": "https://example.org/"}) + "\n")
    assert infer_task(open_path(str(path)), {}).name == "language-model"
    path.write_text(json.dumps({"text": "a", "image": "a.png"}) + "\n")
    assert infer_task(open_path(str(path)), {}).name == "captioning"
    path.write_text(json.dumps({"question": "a", "answer": "b", "image": "a.png"}) + "\n")
    assert infer_task(open_path(str(path)), {}).name == "vqa"


@pytest.mark.parametrize("content", [b"no array", b"\x93NUMPY\1\0"])
def test_a_damaged_array_is_told_as_damaged(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x_train.npy", content)
        archive.writestr("y_train.npy", content)
    with pytest.raises(UserError, match=r"x_train is damaged, or a single number; save it again"):
        infer_task(open_path(str(path)), {})
