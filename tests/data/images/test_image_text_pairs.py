"""Images with texts: what is read of them, what a batch holds, and what is told or skipped."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from foveal.config import AugmentConfig, DataConfig, ImageConfig
from foveal.core.errors import UserError
from foveal.data import prepare_examples
from foveal.data.core.prepared_data import PreparedData
from foveal.data.core.split_data import SplitData
from foveal.data.files.data_part import open_part
from foveal.data.images import image_rows
from foveal.data.images.image_batches import ImageEvalBatches, ImageTrainBatches
from foveal.data.images.image_examples import ImageExamples
from foveal.data.open import open_path
from foveal.data.pairs.pair import PairProcessor
from foveal.data.text.special_tokens import SpecialTokens
from foveal.tasks.infer import infer_task
from tests.support.image_folders import CONTAINERS, SIDE, encode_png, random_images, write_files
from tests.support.pair_formats import IMAGE_TEXT
from tests.support.recorded_calls import record_calls

DATA_FORMAT = IMAGE_TEXT
CONFIG = DataConfig(
    image=ImageConfig(size=SIDE), tokenizer="word", max_length=6, valid_fraction=0.2, test_fraction=0.2
)
WORDS = ("one", "two red", "three blue dogs")


def text(number: int) -> str:
    """Of one to three words."""
    return WORDS[number % 3]


def captioned(count: int, column: str = "text", *rows: str) -> dict[str, bytes]:
    """By name the files of a folder with a table, which has more `rows`."""
    files = {f"images/{n}.png": encode_png(picture) for n, picture in enumerate(random_images(count))}
    lines = [f"file_name,{column}", *(f"{name},{text(n)}" for n, name in enumerate(files)), *rows]
    return files | {"metadata.csv": "\n".join(lines).encode()}


def prepared(data: str, valid: str | None = None, **settings: Any) -> Any:
    return prepare_examples.prepare_examples(
        DATA_FORMAT, data, valid, None, CONFIG.model_copy(update=settings), print
    )


@pytest.mark.parametrize("location", CONTAINERS)
@pytest.mark.parametrize("column", ["text", "text_en"])
def test_a_table_says_the_texts(tmp_path: Path, location: str, column: str) -> None:
    data = write_files(tmp_path / location, captioned(30, column))
    found = prepared(data, valid=data, text=column)
    train, pixels = found.train, random_images(30).reshape(-1, 3).astype(float)
    assert train.references == [text(n) for n in range(30)]
    assert train.sources[3] == f"{data}/images/3.png"
    assert all((train.examples[row] == picture).all() for row, picture in enumerate(random_images(30)))
    assert np.allclose(found.processor.source.statistics.mean, pixels.mean(0))
    assert np.allclose(found.processor.source.statistics.std, pixels.std(0))
    facts = found.facts["parts"]["train"]
    assert (facts["examples"], facts["images"], facts["target_tokens"]) == (30, 30, 60 + 30)
    assert found.processor.target.length_limit.for_source(0) == int(1.5 * 3) + 1


def test_a_load_image_several_texts_is_read_and_kept_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = record_calls(monkeypatch, image_rows, "load_image")
    more = [f"images/{number}.png,{text(number + 1)}" for number in (3, 3, 1)]
    found = prepared(data := write_files(tmp_path / "a", captioned(4, "text", *more)), valid=data)
    assert len(read) == 2 * 4  # as training and as validation data
    examples = found.train.examples
    assert len(examples) == 7
    assert len(examples.unique_images) == 4
    assert examples.columns["picture"].tolist() == [0, 1, 2, 3, 3, 3, 1]
    assert all(
        (examples[row] == random_images(4)[number]).all() for row, number in enumerate([0, 1, 2, 3, 3, 3, 1])
    )
    assert np.allclose(
        found.processor.source.statistics.mean, random_images(4).reshape(-1, 3).astype(float).mean(0)
    )


@pytest.fixture
def captions(tmp_path: Path) -> PreparedData[PairProcessor, SplitData[ImageExamples]]:
    data = write_files(tmp_path / "a", captioned(30))
    found: PreparedData[PairProcessor, SplitData[ImageExamples]] = prepared(data, valid=data)
    return found


def test_a_batch_holds_images_and_the_tokens_of_their_texts(
    captions: PreparedData[PairProcessor, SplitData[ImageExamples]],
) -> None:
    split, processor = captions.train, captions.processor
    batch = ImageEvalBatches(split.examples, ImageConfig(batch_size=4)).batch(0, 1)
    assert batch.rows.tolist() == [4, 5, 6, 7]
    assert batch.lengths.keys() == {"target"}
    assert batch.lengths["target"].tolist() == [3, 4, 2, 3]  # stops counted
    assert batch.tokens == 12
    target = processor.target.tokenizer
    marks = SpecialTokens(target.size)
    for row, tokens, length in zip(
        batch.rows.tolist(), batch.columns["target"].tolist(), batch.lengths["target"].tolist(), strict=True
    ):
        assert target.decode(tokens[: length - 1]).strip() == text(row)
        assert tokens[length - 1] == marks.eos
        assert not any(tokens[length:])
    statistics = split.examples.processor.statistics
    expected = (random_images(30)[4:8] - np.array(statistics.mean)) / np.array(statistics.std)
    expected = torch.tensor(expected.transpose(0, 3, 1, 2), dtype=torch.float32)
    torch.testing.assert_close(batch.columns["source"], expected, rtol=1e-5, atol=1e-5)


def test_a_text_goes_with_its_image_however_that_is_changed(
    captions: PreparedData[PairProcessor, SplitData[ImageExamples]],
) -> None:
    split, processor = captions.train, captions.processor
    augment = AugmentConfig(crop="pad", padding=2, flip=True, color_jitter=0.3)
    order = ImageTrainBatches(split.examples, 8, augment, seed=1)
    seen = []
    for epoch in range(2):
        batches = [order.batch(epoch, index) for index in range(order.per_epoch)]
        assert sorted(torch.cat([batch.rows for batch in batches]).tolist()) == [*range(30)]
        for batch in batches:
            for number, row in enumerate(batch.rows.tolist()):
                own = {name: column[number] for name, column in batch.columns.items()}
                assert processor.target.caption(own).strip() == text(row)
            assert batch.tokens == int(batch.lengths["target"].sum())
        seen.append(torch.cat([batch.columns["source"] for batch in batches]))
    again = ImageTrainBatches(split.examples, 8, augment, seed=1).batch(1, 0)
    assert torch.equal(again.columns["source"], seen[1][: len(again.rows)])
    assert not torch.equal(*seen)


def test_all_texts_of_an_image_fall_on_the_same_side(tmp_path: Path) -> None:
    """Under whatever name it is there."""
    again = {f"again/{n}.png": encode_png(picture) for n, picture in enumerate(random_images(40))}
    rows = captioned(40, "text", *(f"{name},four" for name in again))
    data = write_files(tmp_path / "a", rows | again)
    found = prepared(data)
    every = (found.train, found.valid, found.test)
    sides = [set(part.content_hashes) for part in every if part is not None]
    assert sum(map(len, sides)) == len(set().union(*sides)) == 40
    assert [facts["images"] for facts in found.facts["parts"].values()] == [*map(len, sides)]
    assert sum(len(part) for part in every if part is not None) == 80
    for part in every:
        if part is not None:
            assert part.references.count("four") == len(set(part.content_hashes)) == len(part) / 2


@pytest.mark.parametrize("location", CONTAINERS)
def test_what_can_not_be_used_is_skipped(tmp_path: Path, location: str) -> None:
    rows = [
        "images/31.png,",
        "none.png,two",
        "cut.png,two",
        "images/0.png,six words are too many here",
    ]
    files = captioned(30, "text", *rows)
    files |= {"images/31.png": encode_png(random_images(1)[0]), "cut.png": files["images/1.png"][:-60]}
    files |= {"images/more.png": encode_png(random_images(1)[0]), "notes.txt": b"no picture"}
    data = write_files(tmp_path / location, files)
    config = CONFIG.model_copy(update={"tokenizer": "character", "max_length": 16})
    skipped: list[Any] = []
    found = [*DATA_FORMAT.read(open_part(data), config, skipped)]
    processor = DATA_FORMAT.make_processor(data, found, config)
    train = DATA_FORMAT.encode(found, processor, config, skipped)
    assert len(train) == 30
    whys = [(row.location.removeprefix(data).strip("/, "), row.reason) for row in skipped]
    assert [why for _, why in whys] == [
        "'text' is empty; fill it in or leave the row out",
        "no such file: none.png; fix the name or leave the row out",
        whys[2][1],
        "no row of metadata.csv names it; add a row, or remove the image",
        "28 tokens, and data.max_length=16: train with more",
    ]
    assert "damaged or cut off" in whys[2][1]
    assert whys[3][0] == "images/more.png"


def test_one_text_for_all_is_told(tmp_path: Path) -> None:
    files = {f"{n}.png": encode_png(picture) for n, picture in enumerate(random_images(20))}
    table = "\n".join(["file_name,text", *(f"{name},a dog" for name in files)])
    data, said = write_files(tmp_path / "a", files | {"metadata.csv": table.encode()}), list[str]()
    prepare_examples.prepare_examples(DATA_FORMAT, data, None, None, CONFIG, said.append)
    (line,) = said
    assert "training rows have the text 'a dog', so the model can learn nothing else" in line
    said.clear()
    prepare_examples.prepare_examples(
        DATA_FORMAT, write_files(tmp_path / "b", captioned(20)), None, None, CONFIG, said.append
    )
    assert said == []


def test_what_is_kept_reads_images_alike(tmp_path: Path) -> None:
    data = write_files(tmp_path / "a", captioned(20))
    found = prepared(data, valid=data)
    for name, content in DATA_FORMAT.files(found.processor).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    opened = DATA_FORMAT.load_processor(tmp_path)
    assert DATA_FORMAT.files(opened) == DATA_FORMAT.files(found.processor)
    again, facts = prepare_examples.prepare_eval_examples(DATA_FORMAT, data, CONFIG, opened, print)
    assert facts["sha256"] == found.facts["parts"]["train"]["sha256"]
    batches = [
        ImageEvalBatches(one.examples, ImageConfig(batch_size=20)).batch(0, 0) for one in (found.train, again)
    ]
    assert all(torch.equal(column, batches[1].columns[name]) for name, column in batches[0].columns.items())
    _, pictures, _ = prepare_examples.read_unlabeled(DATA_FORMAT, data, opened, CONFIG, print)
    asked = ImageEvalBatches(pictures, ImageConfig(batch_size=20)).batch(0, 0)
    assert asked.columns.keys() == {"source"}
    assert (asked.lengths, asked.tokens) == ({}, 20)


def test_without_a_table_there_are_no_texts(tmp_path: Path) -> None:
    data = write_files(
        tmp_path / "a",
        {f"{n % 2}/{n}.png": encode_png(picture) for n, picture in enumerate(random_images(9))},
    )
    with pytest.raises(
        UserError, match=r"no metadata\.csv or metadata\.jsonl in it \(columns file_name, text\)"
    ):
        prepared(data)
    data = write_files(tmp_path / "b", captioned(9, "words"))
    with pytest.raises(UserError, match="no column 'text' among 'file_name', 'words'"):
        prepared(data)


def test_parquet_has_texts_too(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pictures = [{"bytes": encode_png(picture)} for picture in random_images(12)]
    table = arrow.table({"image": pictures, "text": [text(n) for n in range(12)]})
    parquet.write_table(table, tmp_path / "a.parquet")
    found = prepared(str(tmp_path / "a.parquet"), valid=str(tmp_path / "a.parquet"))
    assert found.train.references == [text(n) for n in range(12)]
    assert (found.train.examples[5] == random_images(12)[5]).all()


@pytest.mark.parametrize("location", CONTAINERS)
def test_the_task_is_seen_from_the_table(tmp_path: Path, location: str) -> None:
    """A text and no label; other names are said by the settings."""
    data = write_files(tmp_path / location, captioned(9))
    assert infer_task(open_path(data), {}).name == "captioning"
    assert infer_task(open_path(data), {"text": "words"}).name == "image-classification"
    assert infer_task(open_path(data), {"label": "text"}).name == "image-classification"
    other = write_files(tmp_path / f"other{location}", captioned(9, "words"))
    assert infer_task(open_path(other), {}).name == "image-classification"
    assert infer_task(open_path(other), {"text": "words"}).name == "captioning"
    both = write_files(tmp_path / f"both{location}", captioned(9, "text,label"))
    assert infer_task(open_path(both), {}).name == "image-classification"
    inside = {
        f"{part}/{name}": content for part in ("train", "test") for name, content in captioned(9).items()
    }
    assert infer_task(open_path(write_files(tmp_path / f"parts{location}", inside)), {}).name == "captioning"


def test_rows_of_json_lines(tmp_path: Path) -> None:
    files = {f"{n}.png": encode_png(picture) for n, picture in enumerate(random_images(12))}
    rows = (json.dumps({"file_name": name, "text": text(n)}) for n, name in enumerate(files))
    data = write_files(tmp_path / "a", files | {"metadata.jsonl": "\n".join(rows).encode()})
    assert infer_task(open_path(data), {}).name == "captioning"
    assert prepared(data, valid=data).train.references == [text(n) for n in range(12)]


def test_grey_images(tmp_path: Path) -> None:
    out = io.BytesIO()
    Image.fromarray(random_images(1)[0]).convert("L").save(out, "PNG")
    data = write_files(tmp_path / "a", captioned(9))
    config = {"image": ImageConfig(size=SIDE, channels=1)}
    found = prepared(data, valid=data, **config)
    assert (found.train.examples[0][..., 0] == np.asarray(Image.open(out))).all()
    assert len(found.processor.source.statistics.mean) == 1


@pytest.mark.slow
def test_emoji(outside_data: Path) -> None:
    """Every one of the 3,786 can be used, in any of its languages."""
    config = DataConfig(image=ImageConfig(size=16), text="text_de", tokenizer="byte")
    skipped: list[Any] = []
    rows = [*DATA_FORMAT.read(open_part(str(outside_data / "emoji_captions.zip")), config, skipped)]
    assert (len(rows), skipped) == (3786, [])
    assert rows[0].fields["target"] == "Taste: #"
