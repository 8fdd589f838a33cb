"""Labelled images as examples: where they are read, what a model is given of them, and in which order."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from foveal.config import AugmentConfig, ConfigError, DataConfig, ImageConfig
from foveal.core.errors import UserError
from foveal.data import prepare_examples
from foveal.data.core.split_data import SplitData
from foveal.data.core.standardize import Statistics
from foveal.data.images.image_batches import ImageEvalBatches, ImageTrainBatches
from foveal.data.images.image_examples import ImageExamples, ImageProcessor
from foveal.data.open import open_path
from foveal.data.pairs.labels import LabelProcessor
from foveal.data.pairs.pair import PairProcessor
from foveal.tasks.config import load_config
from tests.support.image_folders import (
    CONTAINERS,
    SIDE,
    encode_png,
    images_by_class,
    random_images,
    write_files,
)
from tests.support.pair_formats import IMAGE_LABEL

DATA_FORMAT = IMAGE_LABEL
CONFIG = DataConfig(image=ImageConfig(size=SIDE), valid_fraction=0.2, test_fraction=0.2)


def within(folder: str, files: dict[str, bytes]) -> dict[str, bytes]:
    return {f"{folder}/{name}": content for name, content in files.items()}


def prepared(data: str, valid: str | None = None, test: str | None = None, **settings: Any) -> Any:
    return prepare_examples.prepare_examples(
        DATA_FORMAT, data, valid, test, CONFIG.model_copy(update=settings), print
    )


def refusal(data: str, **settings: Any) -> str:
    with pytest.raises(UserError) as caught:
        prepared(data, **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("location", CONTAINERS)
def test_a_folder_for_each_class(tmp_path, location):
    data = write_files(tmp_path / location, images_by_class(30))
    found = prepared(data, valid=data)
    train = found.train
    assert found.processor.target.labels == ("a", "b")
    assert train.references == ["a"] * 15 + ["b"] * 15
    assert [Path(source).name for source in train.sources] == [
        f"{n:03}.png" for n in (*range(0, 30, 2), *range(1, 30, 2))
    ]
    pictures = random_images(30)
    ordered = [*pictures[::2], *pictures[1::2]]
    assert all((train.examples[row] == picture).all() for row, picture in enumerate(ordered))
    pixels = pictures.reshape(-1, 3).astype(float)
    assert np.allclose(found.processor.source.statistics.mean, pixels.mean(0))
    assert np.allclose(found.processor.source.statistics.std, pixels.std(0))
    batch = ImageEvalBatches(train.examples, ImageConfig(batch_size=30)).batch(0, 0)
    expected = ((np.stack(ordered) - pixels.mean(0)) / pixels.std(0)).transpose(0, 3, 1, 2)
    assert torch.allclose(batch.columns["source"], torch.tensor(expected, dtype=torch.float32), atol=1e-5)
    assert batch.columns["label"].tolist() == [0] * 15 + [1] * 15


@pytest.mark.parametrize("location", CONTAINERS)
@pytest.mark.parametrize("names", [("train", "test"), ("train", "val", "test"), ("train", "valid")])
def test_a_folder_for_each_part(tmp_path, location, names):
    files: dict[str, bytes] = {}
    for seed, name in enumerate(names):
        files |= within(name, images_by_class(10 + seed, seed))
    found = prepared(write_files(tmp_path / location, files))
    sizes = {part: facts["examples"] for part, facts in found.facts["parts"].items()}
    told = {"val": "valid"}
    assert sizes == {told.get(name, name): 10 + seed for seed, name in enumerate(names)}
    assert np.allclose(found.processor.source.statistics.mean, random_images(10).reshape(-1, 3).mean(0))
    assert open_path(str(tmp_path / location)).kind == "images"


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("location", CONTAINERS)
def test_a_table_says_the_labels(tmp_path, location, form):
    """The labels are in the named column."""
    names = [*(f"images/{n}.png" for n in range(20)), "none.png", "images/../../0.png"]
    rows = [{"id": str(n), "kind": "ab"[n % 2], "file_name": name} for n, name in enumerate(names)]
    lines = [",".join(rows[0]), *(",".join(row.values()) for row in rows)]
    table = "\n".join(lines if form == "csv" else map(json.dumps, rows))
    files = {f"images/{n}.png": encode_png(picture) for n, picture in enumerate(random_images(20))}
    data = write_files(tmp_path / location, files | {f"metadata.{form}": table.encode()})
    assert open_path(data).kind == "images"
    found = prepared(data, valid=data, label="kind")
    assert found.train.references == ["a", "b"] * 10
    assert all((found.train.examples[n] == picture).all() for n, picture in enumerate(random_images(20)))
    assert found.train.sources[3] == f"{data}/images/3.png"
    assert [row.reason for row in found.skipped[:2]] == [
        "no such file: none.png; fix the name or leave the row out",
        "images/../../0.png leads out of the folder; move the file into it"
        if location == "photos"
        else "no such file: images/../../0.png; fix the name or leave the row out",
    ]
    assert "no column 'label' among 'id', 'kind', 'file_name'" in refusal(data)


@pytest.mark.parametrize("location", CONTAINERS)
def test_a_table_for_each_part(tmp_path, location):
    files: dict[str, bytes] = {}
    for part, count in (("train", 12), ("test", 6)):
        rows = "".join(f"{n}.png,{'ab'[n % 2]}\n" for n in range(count))
        pictures = {f"{n}.png": encode_png(picture) for n, picture in enumerate(random_images(count))}
        files |= within(part, pictures | {"metadata.csv": f"file_name,label\n{rows}".encode()})
    data = write_files(tmp_path / location, files)
    assert open_path(data).kind == "images"
    found = prepared(data)
    assert (len(found.train), found.valid, len(found.test)) == (12, None, 6)
    assert found.test.references == ["a", "b"] * 3


def test_damaged_zips_are_refused(tmp_path):
    path = tmp_path / "a.zip"
    rows = "".join(f"{n}.png,{'ab'[n % 2]}\n" for n in range(99))
    write_files(path, {"metadata.csv": f"file_name,label\n{rows}".encode()})
    content = path.read_bytes()
    for start, change in ((60, b"\xff" * 40), (6, b"\x01"), (content.index(b"PK\1\2") + 8, b"\x01")):
        path.write_bytes(content[:start] + change + content[start + len(change) :])
        assert str(path) in refusal(str(path))
    path.write_bytes(content[:-30])
    assert "not a folder, nor readable as a zip" in refusal(str(path))


@pytest.mark.parametrize("location", CONTAINERS)
def test_train_may_be_a_class(tmp_path, location):
    """Beside classes that are no parts; and a table says what its folders are."""
    files = {
        f"{label}/{n}.png": encode_png(p)
        for label in ("train", "car")
        for n, p in enumerate(random_images(9))
    }
    data = write_files(tmp_path / location, files)
    assert prepared(data, valid=data).processor.target.labels == ("car", "train")
    files = within("train", images_by_class(9)) | within("test", images_by_class(9))
    rows = "".join(f"{name},{'ab'[n % 2]}\n" for n, name in enumerate(files))
    table = {"metadata.csv": f"file_name,label\n{rows}".encode()}
    data = write_files(tmp_path / f"other{location}", files | table)
    found = prepared(data, valid=data)
    assert (len(found.train), found.test) == (18, None)


def test_a_folder_a_class_needs_no_column(tmp_path):
    data = write_files(tmp_path / "a", images_by_class(9))
    assert len(prepared(data, valid=data, label="kind").train) == 9


@pytest.mark.parametrize("location", CONTAINERS)
def test_a_heavy_file_is_not_opened(tmp_path, location, monkeypatch):
    monkeypatch.setattr("foveal.data.files.file_bytes.MAX_FILE_BYTES", 10_000)
    data = write_files(tmp_path / location, images_by_class(9) | {"a/large.png": bytes(10_001)})
    (row,) = [row for row in prepared(data, valid=data).skipped if row.location == f"{data}, a/large.png"][:1]
    assert "a file of more than" in row.reason


def test_a_zip_of_one_folder_is_that_folder(tmp_path):
    files = within("data/photos", images_by_class(30)) | {
        "__MACOSX/data/._photos": b"",
        "data/.DS_Store": b"",
    }
    data = write_files(tmp_path / "a.zip", files)
    assert len(prepared(data, valid=data).train) == 30


def test_equal_pictures_fall_on_the_same_side(tmp_path):
    """By their pixels alone: neither names, nor labels, nor how they are stored play a role."""
    files = images_by_class(40)
    out = io.BytesIO()
    for number, picture in enumerate(random_images(40)):
        out = io.BytesIO()
        Image.fromarray(picture).save(out, "BMP")
        files[f"a/again{number}.bmp"] = out.getvalue()
    found = prepared(write_files(tmp_path / "a", files))
    sides = [set(part.content_hashes) for part in (found.train, found.valid, found.test)]
    assert sum(map(len, sides)) == len(set().union(*sides)) == 40
    assert sum(map(len, (found.train, found.valid, found.test))) == 80


def test_parts_are_the_same_at_any_size(tmp_path):
    """Else what goes on at another size would be measured on what it was trained on."""
    data = write_files(tmp_path / "a", images_by_class(40))
    found = [
        [[*part.content_hashes] for part in (found.train, found.valid, found.test)]
        for size in (SIDE // 2, SIDE, 2 * SIDE)
        for found in [prepared(data, image=ImageConfig(size=size))]
    ]
    assert found[0] == found[1] == found[2]


def test_what_is_kept_reads_new_images_alike(tmp_path):
    data = write_files(tmp_path / "a", images_by_class(20))
    found = prepared(data, valid=data)
    for name, content in DATA_FORMAT.files(found.processor).items():
        (tmp_path / name).write_bytes(content)
    opened = DATA_FORMAT.load_processor(tmp_path)
    assert opened == found.processor
    again, facts = prepare_examples.prepare_eval_examples(DATA_FORMAT, data, CONFIG, opened, print)
    assert facts["sha256"] == found.facts["parts"]["train"]["sha256"]
    flat = {name.replace("/", "-"): content for name, content in images_by_class(20).items()}
    every = ImageEvalBatches(again.examples, ImageConfig(batch_size=20)).batch(0, 0).columns["source"]
    for place in CONTAINERS:
        asked = write_files(tmp_path / place, flat | {"notes.txt": b"no picture"})
        rows, pictures, _ = prepare_examples.read_unlabeled(DATA_FORMAT, asked, opened, CONFIG, print)
        assert [row.fields["source"] for row in rows] == [f"{asked}/{name}" for name in sorted(flat)]
        batch = ImageEvalBatches(pictures, ImageConfig(batch_size=20)).batch(0, 0)
        assert batch.columns.keys() == {"source"}
        assert (batch.columns["source"] == every).all()
    ((one,), *_) = prepare_examples.read_unlabeled(DATA_FORMAT, f"{data}/a/000.png", opened, CONFIG, print)
    assert one.fields["source"] == f"{data}/a/000.png"
    (tmp_path / "images.json").write_text("[")
    with pytest.raises(UserError, match=r"images\.json: damaged"):
        DATA_FORMAT.load_processor(tmp_path)


@pytest.mark.parametrize("location", CONTAINERS)
def test_what_can_not_be_used_is_skipped(tmp_path, location):
    files = images_by_class(30)
    cut = files["b/001.png"][:-60]
    files |= {
        "a/notes.txt": b"hello",
        "README": b"hello",
        "b/cut.png": cut,
        "b/empty.png": b"",
        "b/.hid": b"",
    }
    data = write_files(tmp_path / location, files)
    found = prepared(data, valid=data)
    assert len(found.train) == 30
    whys = {
        row.location.removeprefix(f"{data}, "): row.reason for row in found.skipped[: len(found.skipped) // 2]
    }
    assert whys.keys() == {"README", "a/notes.txt", "b/cut.png", "b/empty.png"}
    assert "not in a folder of a label" in whys["README"]
    assert "not an image that can be read" in whys["a/notes.txt"]
    assert "damaged or cut off" in whys["b/cut.png"]
    assert whys["b/empty.png"] == "empty; get the file again"


def test_an_unknown_label_is_skipped(tmp_path):
    data = write_files(tmp_path / "a", images_by_class(20))
    found = prepared(data, valid=write_files(tmp_path / "b", images_by_class(9, 1, "abc")))
    assert len(found.valid) == 6
    assert {row.reason for row in found.skipped} == {"the label 'c' is not among those of training"}


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (("Cat", "cat"), "case"),
        (("0", "0.0"), "how the number is written"),
        (("01", "1"), "how the number is"),
    ],
)
def test_labels_that_differ_in_spelling_alone_are_told(labels, kind, tmp_path):
    files = {
        f"{label}/{n}.png": encode_png(p)
        for label in (*labels, "dog")
        for n, p in enumerate(random_images(9))
    }
    data, said = write_files(tmp_path / "a.zip", files), list[str]()
    prepare_examples.prepare_examples(DATA_FORMAT, data, data, None, CONFIG, said.append)
    assert said[-1].startswith(f"the labels '{labels[0]}' and '{labels[1]}' differ only in {kind}")
    assert said[-1].endswith(", and count as 2 classes")
    said.clear()
    small = write_files(tmp_path / "b", images_by_class(9))
    prepare_examples.prepare_examples(DATA_FORMAT, small, small, None, CONFIG, said.append)
    assert len(said) == 1  # of the overlap


def test_an_empty_class_is_told(tmp_path):
    data = write_files(tmp_path / "a", images_by_class(9))
    (tmp_path / "a" / "c").mkdir()
    found = prepared(data, valid=data)
    assert found.processor.target.labels == ("a", "b")
    assert found.skipped[0].location == f"{data}, c"
    assert "a folder of a label without files" in found.skipped[0].reason


def test_refused_in_one_line(tmp_path):
    one = write_files(tmp_path / "one", images_by_class(20, labels="a"))
    assert "images to train on have the label 'a': at least two classes are needed" in refusal(one)
    (tmp_path / "empty").mkdir()
    assert "nor a folder of files for each label; make one" in refusal(str(tmp_path / "empty"))
    (tmp_path / "bare" / "a").mkdir(parents=True)
    assert "a folder of a label without files" in refusal(str(tmp_path / "bare"))
    texts = write_files(tmp_path / "texts", {"a/1.txt": b"hello", "b/2.txt": b"hello"})
    assert "no rows to train on (2 can't be used, the first: " in refusal(texts)
    (tmp_path / "a.zip").write_bytes(b"no zip")
    assert "a.zip: not a folder, nor readable as a zip" in refusal(str(tmp_path / "a.zip"))


# Orders.


@pytest.fixture
def split(tmp_path: Path) -> SplitData[ImageExamples]:
    data = write_files(tmp_path / "a", images_by_class(50))
    return prepared(data, valid=data).train


ALL = AugmentConfig(crop="pad", padding=2, flip=True, color_jitter=0.4, cutout=3)
PARTS = AugmentConfig(crop="random-resized", flip=True, color_jitter=0.4)


@pytest.mark.parametrize("augment", [AugmentConfig(), ALL, PARTS])
def test_every_image_once_an_epoch(split, augment):
    order = ImageTrainBatches(split.examples, 16, augment, seed=3)
    epochs = []
    for epoch in range(3):
        batches = [order.batch(epoch, index) for index in range(order.per_epoch)]
        rows = torch.cat([batch.rows for batch in batches]).tolist()
        assert sorted(rows) == [*range(50)]
        assert {len(batch.rows) for batch in batches} == {12, 13}
        assert [batch.tokens for batch in batches] == [len(batch.rows) for batch in batches]
        epochs.append(rows)
        again = ImageTrainBatches(split.examples, 16, augment, seed=3).batch(epoch, 2)
        assert all((again.columns[name] == batches[2].columns[name]).all() for name in ("source", "label"))
        for batch in batches:
            expected = [split.examples.columns["label"][row] for row in batch.rows.tolist()]
            assert batch.columns["label"].tolist() == expected
    assert len({tuple(rows) for rows in epochs}) == 3
    assert ImageTrainBatches(split.examples, 16, augment, seed=4).batch(0, 0).rows.tolist() != epochs[0][:12]
    with pytest.raises(IndexError):
        order.batch(0, 4)


def seen(split: SplitData[ImageExamples], augment: AugmentConfig, batch: int, epoch: int) -> torch.Tensor:
    """All images as they are seen in an epoch, in the order of the part."""
    order = ImageTrainBatches(split.examples, batch, augment, seed=0)
    batches = [order.batch(epoch, index) for index in range(order.per_epoch)]
    rows = torch.cat([one.rows for one in batches])
    return torch.cat([one.columns["source"] for one in batches])[rows.argsort()]


@pytest.mark.parametrize("augment", [ALL, PARTS])
def test_how_an_image_is_changed_depends_on_the_epoch_but_not_on_its_batch(split, augment):
    first = seen(split, augment, 16, 0)
    assert torch.allclose(first, seen(split, augment, 7, 0), atol=1e-5)
    assert not (first == seen(split, augment, 16, 1)).flatten(1).all(1).any()


def test_images_are_changed_as_is_asked_for(split):
    """Each in a way of its own."""
    plain = seen(split, AugmentConfig(), 16, 0)
    flips = (seen(split, AugmentConfig(flip=True), 16, 0) == plain.flip(3)).flatten(1).all(1)
    assert 10 < flips.sum() < 40
    shifts = seen(split, AugmentConfig(crop="pad", padding=1), 16, 0)
    inner = [
        plain[:, :, 1:-1, 1:-1] == shifts[:, :, y : y + 6, x : x + 6] for y in range(3) for x in range(3)
    ]
    found = torch.stack(inner).flatten(2).all(2)
    assert (found.sum(0) == 1).all()
    assert (found.sum(1) > 0).all()
    mirrored = seen(split, AugmentConfig(crop="reflect-pad", padding=1), 16, 0)
    assert torch.equal(mirrored[:, :, 1:-1, 1:-1], shifts[:, :, 1:-1, 1:-1])
    assert (mirrored != 0).all()
    assert (shifts == 0).all(1).any()
    blots = (seen(split, AugmentConfig(cutout=3), 16, 0) == 0).all(1)
    assert blots.flatten(1).sum(1).unique().tolist() == [4, 6, 9]
    jitter = seen(split, AugmentConfig(color_jitter=0.2), 16, 0)
    assert not (jitter == plain).flatten(1).all(1).any()
    crops = seen(split, PARTS, 16, 0)
    assert crops.shape == plain.shape


@pytest.mark.parametrize("crop", ["pad", "reflect-pad"])
def test_images_are_moved_over_what_is_kept_around_the_centre(tmp_path, crop):
    """Of a picture a pixel wider than what is seen, windows of its own pixels come before a border."""
    data, own = write_files(tmp_path / "a", images_by_class(2)), random_images(2)
    part = prepared(data, valid=data, image=ImageConfig(size=SIDE - 1)).train
    statistics = part.examples.processor.statistics
    order, seen = ImageTrainBatches(part.examples, 2, AugmentConfig(crop=crop, padding=1), seed=0), set()
    for epoch in range(60):
        batch = order.batch(epoch, 0)
        for row, image in zip(batch.rows.tolist(), batch.columns["source"].numpy(), strict=True):
            levels = image.transpose(1, 2, 0) * statistics.std + statistics.mean
            seen.add((row, np.rint(levels).astype(np.uint8).tobytes()))
    windows = {
        (row, own[row, top : top + 7, left : left + 7].tobytes())
        for row in (0, 1)
        for top in (0, 1)
        for left in (0, 1)
    }
    assert windows <= seen
    assert len(seen) == 18


def test_held_out_images_are_seen_as_they_are(split):
    order = ImageEvalBatches(split.examples, ImageConfig(batch_size=16))
    batches = [order.batch(epoch, index) for epoch in (0, 1) for index in range(order.per_epoch)]
    assert [batch.rows.tolist() for batch in batches[:4]] == [
        [*range(start, min(start + 16, 50))] for start in range(0, 50, 16)
    ]
    assert all(
        (a.columns["source"] == b.columns["source"]).all()
        for a, b in zip(batches[:4], batches[4:], strict=True)
    )


def test_views_of_an_image_stand_together(split):
    alone = ImageEvalBatches(split.examples, ImageConfig(batch_size=16)).batch(0, 0).columns["source"]
    image = ImageConfig(batch_size=16, tta="flip", tta_scales="1,1.5")
    batch = ImageEvalBatches(split.examples, image).batch(0, 1)
    assert batch.rows.tolist() == [4, 5, 6, 7]
    assert batch.columns["label"].shape == (4,)
    found = batch.columns["source"].view(4, 4, *alone.shape[1:])
    assert torch.equal(found[:, 0], alone[4:8])
    assert torch.equal(found[:, 1], alone[4:8].flip(3))


@pytest.mark.parametrize("scales", ["", "one", "1,,2", "nan", "0", "-1"])
def test_scales_that_are_none_are_refused(scales):
    with pytest.raises(ConfigError, match=r"data\.image\.tta_scales.*such as 1,1\.125"):
        load_config("image-classification", [f"data.image.tta_scales={scales}"])


def test_every_image_is_seen_both_ways_in_turn(split):
    augment = AugmentConfig(flip=True)
    as_it_is, first, second = (
        seen(split, given, 16, epoch) for given, epoch in ((AugmentConfig(), 0), (augment, 0), (augment, 1))
    )
    assert torch.equal(second, first.flip(3))
    kept = (first == as_it_is).flatten(1).all(1)
    assert 0.2 < kept.float().mean() < 0.8


def test_mixed_images_and_labels(split):
    plain, mixup = (
        ImageTrainBatches(split.examples, 16, AugmentConfig(mixup=share), seed=3).batch(2, 1)
        for share in (0.0, 0.5)
    )
    share = mixup.columns["share"][:, None, None, None]
    assert ((share >= 0.5) & (share <= 1)).all()
    assert share.unique().numel() > 8
    source = plain.columns["source"]
    torch.testing.assert_close(mixup.columns["source"], share * source + (1 - share) * source.roll(1, 0))
    assert torch.equal(mixup.columns["other"], plain.columns["label"].roll(1))
    again = ImageTrainBatches(split.examples, 16, AugmentConfig(mixup=0.5), seed=3).batch(2, 1)
    assert all(torch.equal(again.columns[name], column) for name, column in mixup.columns.items())


def test_of_larger_images_the_centre_is_seen(tmp_path):
    data = write_files(
        tmp_path / "a",
        {f"{n % 2}/{n}.png": encode_png(p) for n, p in enumerate(random_images(20, side=SIDE + 1))},
    )
    found = prepared(data, valid=data)
    batch = ImageEvalBatches(found.train.examples, ImageConfig(batch_size=20)).batch(0, 0)
    statistics = found.processor.source.statistics
    pixels = batch.columns["source"].permute(0, 2, 3, 1) * torch.tensor(statistics.std)
    pixels = pixels + torch.tensor(statistics.mean)
    ordered = np.concatenate([random_images(20, side=SIDE + 1)[[0, 10, 12, 14, 16, 18, 2, 4, 6, 8]]])
    assert np.allclose(pixels[:10].numpy(), ordered[:, :SIDE, :SIDE], atol=1e-3)


@pytest.mark.slow
def test_cifar10(outside_data):
    """Every one of the 10,000 to test can be used, and has the statistics that everyone knows of the rest."""
    mean, deviation = np.array([0.4914, 0.4822, 0.4465]) * 255, np.array([0.2470, 0.2435, 0.2616]) * 255
    names = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    processor = PairProcessor(
        ImageProcessor(Statistics(tuple(mean), tuple(deviation)), 32), LabelProcessor(tuple(names))
    )
    config, data = CONFIG.model_copy(update={"image": ImageConfig(size=32)}), outside_data / "cifar10.zip"
    part, facts = prepare_examples.prepare_eval_examples(DATA_FORMAT, str(data), config, processor, print)
    assert facts["skipped"] == 0
    assert part.references == [name for name in names for _ in range(1_000)]
    images = ImageEvalBatches(part.examples, ImageConfig(batch_size=10_000)).batch(0, 0).columns["source"]
    assert images.mean((0, 2, 3)).abs().max() < 0.02
    assert (images.std((0, 2, 3)) - 1).abs().max() < 0.01
