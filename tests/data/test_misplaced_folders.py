"""Folders that are refused with what to do: boxes and masks beside pictures, splits inside classes, folds."""

import subprocess
from pathlib import Path

import pytest

from foveal.core.errors import UserError
from foveal.data.open import open_path
from foveal.tasks.infer import describe_named_task, infer_task
from tests.support.class_folders import FOLDERS, LABELS, PER_CLASS, files_by_class, labels_by_split
from tests.support.image_folders import encode_png, random_images, write_files

YOLO, XML = b"0 0.5 0.5 0.2 0.2\n1 0.5 0.5 .1 1e-3\n", b"<annotation><bndbox></bndbox></annotation>"
COCO = b'{"images": [], "annotations": [{"bbox": [1, 2, 3, 4]}]}'
PICTURES = [encode_png(image) for image in random_images(4)]
ANNOTATIONS: dict[str, tuple[str, bytes]] = {
    "images/{}.png labels/{}.txt": ("labels/0.txt has boxes (YOLO)", YOLO),
    "images/train/{}.png labels/train/{}.txt": ("labels/train/0.txt has boxes (YOLO)", YOLO),
    "train/images/{}.png train/labels/{}.txt": ("train/labels/0.txt has boxes (YOLO)", YOLO),
    "{}.png {}.txt": ("0.txt has boxes (YOLO)", YOLO),
    "JPEGImages/{}.png Annotations/{}.xml": ("Annotations/0.xml has boxes (Pascal VOC)", XML),
    "{}.png {}.xml": ("0.xml has boxes (Pascal VOC)", XML),
    "{}.png _annotations.coco.json": ("_annotations.coco.json has boxes (COCO)", COCO),
    "images/{}.png masks/{}.png": ("masks has masks of the pictures in images", PICTURES[0]),
}
moved_kinds = pytest.mark.parametrize("kind", ["pictures", "recordings", "texts"])


@pytest.mark.parametrize("layout", ANNOTATIONS)
@pytest.mark.parametrize("location", ["a", "a.zip"])
def test_boxes_and_masks_beside_pictures_are_refused(layout: str, location: str, tmp_path: Path) -> None:
    seen, content = ANNOTATIONS[layout]
    picture, annotation = layout.split()
    files = {picture.format(number): image for number, image in enumerate(PICTURES)}
    files |= {annotation.format(number): content for number in range(len(PICTURES))}
    with pytest.raises(UserError) as refused:
        infer_task(open_path(write_files(tmp_path / location, files)), {})
    assert seen.removeprefix("train/" if location == "a.zip" else "") in str(refused.value)
    assert "is not offered. To label whole pictures, move them to a folder for each class" in str(
        refused.value
    )


@pytest.mark.parametrize(
    ("annotation", "content"),
    [("cat/{}.txt", b"3"), ("cat/{}.txt", b"1 2 3"), ("cat/{}.xml", XML), ("mask/{}.png", PICTURES[1])],
)
def test_labels_texts_and_classes_are_no_boxes(annotation: str, content: bytes, tmp_path: Path) -> None:
    files = {f"{label}/{number}.png": image for number, image in enumerate(PICTURES) for label in LABELS}
    files |= {annotation.format(number): content for number in range(len(PICTURES))}
    assert open_path(write_files(tmp_path / "a", files)).kind == "images"


def run_the_command(refusal: str) -> None:
    """Run the command at the end of a message."""
    command = "cd " + refusal.partition(": cd ")[2]
    subprocess.run(["sh", "-euc", command], check=True, capture_output=True)


@moved_kinds
@pytest.mark.parametrize("splits", [("train", "test"), ("Training", "val", "Testing")])
def test_splits_inside_the_classes_are_refused_with_a_command(
    kind: str, splits: tuple[str, ...], tmp_path: Path
) -> None:
    given = files_by_class(kind)
    files = {name.replace("/", f"/{split}/"): content for name, content in given.items() for split in splits}
    opened = open_path(write_files(tmp_path / "a b", files))
    with pytest.raises(
        UserError, match=rf"are inside the folders cat, dog; .* as {splits[0]}/cat: cd "
    ) as refused:
        infer_task(opened, {})
    with pytest.raises(UserError, match="are inside the folders"):
        describe_named_task(opened, infer_task(open_path(write_files(tmp_path / "b", given)), {}), "--task")
    run_the_command(str(refused.value))
    counts = labels_by_split(str(tmp_path / "a b"))
    assert len(counts) == len(splits)
    assert [*counts.values()] == [dict.fromkeys(LABELS, PER_CLASS)] * len(splits)
    assert infer_task(open_path(str(tmp_path / "a b")), {}).name == FOLDERS[kind].task
    with pytest.raises(UserError, match=rf"such as {splits[0]}/cat$"):
        open_path(write_files(tmp_path / "a.zip", files)).splits.keys()


@pytest.mark.parametrize("kind", FOLDERS)
@pytest.mark.parametrize("name", ["fold{}", "Fold_{}", "split{}", "cv {}", "part{}"])
def test_folds_are_refused_with_a_command(kind: str, name: str, tmp_path: Path) -> None:
    if kind == "texts" and name.startswith("part"):
        pytest.skip("parts of texts may be parts of a book")
    files = {
        f"{name.format(fold)}/{file}": content
        for fold in range(3)
        for file, content in files_by_class(kind).items()
    }
    with pytest.raises(UserError, match=r"look like folds of cross-validation, .*: cd ") as refused:
        infer_task(open_path(write_files(tmp_path / "a", files)), {})
    run_the_command(str(refused.value))
    frames = 3 if kind == "clips" else 1
    assert labels_by_split(str(tmp_path / "a")) == {
        "train": dict.fromkeys(LABELS, 2 * PER_CLASS * frames),
        "test": dict.fromkeys(LABELS, PER_CLASS * frames),
    }
    assert infer_task(open_path(str(tmp_path / "a")), {}).name == FOLDERS[kind].task


def test_volumes_and_numbered_classes_are_no_folds(tmp_path: Path) -> None:
    for name in ("part{}/{}.txt", "class{}/{}.png", "vol{}/a/{}.txt"):
        content = PICTURES[0] if name.endswith("png") else b"It is a truth universally acknowledged. " * 9
        files = {name.format(folder, number): content for folder in (1, 2) for number in range(4)}
        assert [*open_path(write_files(tmp_path / name[:3], files)).splits] == ["train"]
