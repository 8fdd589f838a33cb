"""Questions about images: what is read of them and how often, what a batch holds, what is skipped."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from foveal.config import AugmentConfig, ImageConfig
from foveal.core.errors import UserError
from foveal.data import prepare_examples
from foveal.data.files.data_part import open_part
from foveal.data.images import image_rows
from foveal.data.images.image_batches import ImageEvalBatches, ImageTrainBatches
from foveal.data.open import open_path
from foveal.data.pairs.pair import PairFormat
from foveal.tasks.infer import infer_task
from foveal.tasks.vqa.answer_targets import IGNORE_INDEX
from foveal.tasks.vqa.data_settings import VQADataConfig
from foveal.tasks.vqa.question_batches import VQABatches, collate_center_crops
from tests.support.image_folders import CONTAINERS, SIDE, encode_png, random_images, write_files
from tests.support.pair_formats import ANSWERS, CHOICES, WRITTEN_ANSWERS
from tests.support.question_tables import COLOURS, question_files, question_rows, write_question_rows
from tests.support.recorded_calls import record_calls

CONFIG = VQADataConfig(
    image=ImageConfig(size=SIDE, batch_size=4),
    tokenizer="word",
    max_length=8,
    valid_fraction=0.2,
    test_fraction=0.2,
)
MORE: dict[str, Any] = {"choices": "red|green|blue", "history": "what is it? a thing."}


def prepared(data_format: PairFormat, data: str, valid: str | None = None, **settings: Any) -> Any:
    return prepare_examples.prepare_examples(
        data_format, data, valid, None, CONFIG.model_copy(update=settings), print
    )


@pytest.mark.parametrize("location", CONTAINERS)
def test_an_image_is_read_and_kept_once(
    tmp_path: Path, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = record_calls(monkeypatch, image_rows, "load_image")
    files = question_files([*question_rows(5), question_rows(1)[0] | {"file_name": "again.png"}], 5) | {
        "again.png": encode_png(random_images(5)[0])
    }
    data = write_files(tmp_path / location, files)
    train = prepared(ANSWERS, data, valid=data).train
    assert len(read) == 2 * 6  # as training and as validation data
    assert len(train) == 16
    examples = train.examples
    assert len(examples.images) == 5
    assert examples.columns["image"].tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3 + [4] * 3 + [0]
    assert all((examples.images[row] == picture).all() for row, picture in enumerate(random_images(5)))
    assert train.facts | {"sha256": ""} == {"examples": 16, "images": 5, "sha256": ""}


def test_statistics_count_each_image_once(tmp_path: Path) -> None:
    rows = question_rows(3) + question_rows(1, each=50)[3:]
    data = write_question_rows(tmp_path / "a", rows, 3)
    found = prepared(ANSWERS, data, valid=data).processor.source.statistics
    pixels = random_images(3).reshape(-1, 3).astype(float)
    assert np.allclose(found.mean, pixels.mean(0))
    assert np.allclose(found.std, pixels.std(0))


def test_all_questions_about_an_image_fall_on_the_same_side(tmp_path: Path) -> None:
    found = prepared(ANSWERS, write_question_rows(tmp_path / "a", question_rows(40), 40))
    kept = [
        {tuple(name.split(": ")[:1]) for name in part.sources}
        for part in (found.train, found.valid, found.test)
    ]
    assert sum(map(len, kept)) == len(set().union(*kept)) == 40
    assert [len(part) for part in (found.train, found.valid, found.test)] == [
        3 * len(names) for names in kept
    ]


def test_a_batch_has_images_once_and_all_questions_about_them(tmp_path: Path) -> None:
    data = write_question_rows(tmp_path / "a", question_rows(10, **MORE), 10)
    found = prepared(CHOICES, data, valid=data)
    examples, processor = found.train.examples, found.processor
    order = VQABatches(examples, ImageTrainBatches(examples.images, 4, AugmentConfig(), seed=0))
    seen: list[int] = []
    for batch in (order.batch(0, index) for index in range(order.per_epoch)):
        columns, rows = batch.columns, batch.rows.tolist()
        assert len(columns["source"]) in (3, 4)
        assert len(rows) == batch.tokens == 3 * len(columns["source"])
        for place, row in enumerate(rows):
            number, turn = divmod(row, 3)
            mean, deviation = (
                np.array(values)
                for values in (processor.source.statistics.mean, processor.source.statistics.std)
            )
            expected = torch.tensor(
                ((random_images(10)[number] - mean) / deviation).transpose(2, 0, 1), dtype=torch.float32
            )
            torch.testing.assert_close(
                columns["source"][columns["source_of"][place]], expected, rtol=1e-4, atol=1e-4
            )
            question = found.train.sources[row].partition(": ")[2]
            for name, text in (("question", question), ("history", MORE["history"])):
                tokens = columns[name][place][: batch.lengths[name][place] - 1].tolist()
                assert processor.source.text.decode(tokens).strip() == text
            texts = [
                processor.source.text.decode(
                    columns["choice"][which][: batch.lengths["choice"][which] - 1].tolist()
                ).strip()
                for which in columns["choices"][place].tolist()
            ]
            assert texts == [*COLOURS]
            assert texts[columns["label"][place]] == COLOURS[(number + turn) % 3]
        seen += rows
    assert sorted(seen) == [*range(30)]
    again = VQABatches(examples, ImageTrainBatches(examples.images, 4, AugmentConfig(), seed=0)).batch(0, 1)
    assert all(torch.equal(again.columns[name], column) for name, column in order.batch(0, 1).columns.items())


def test_some_rows_as_they_are_when_not_trained_on(tmp_path: Path) -> None:
    data = write_question_rows(tmp_path / "a", question_rows(6), 6)
    examples = prepared(WRITTEN_ANSWERS, data, valid=data).train.examples
    batch, every = (
        collate_center_crops(examples, np.array([16, 1, 2])),
        ImageEvalBatches(examples.images, ImageConfig(batch_size=9)),
    )
    assert batch.rows.tolist() == [16, 1, 2]
    assert batch.columns["source_of"].tolist() == [1, 0, 0]
    assert torch.equal(batch.columns["source"], every.batch(0, 0).columns["source"][[0, 5]])
    assert batch.tokens == 3 * 2


@pytest.mark.parametrize("location", CONTAINERS)
def test_what_can_not_be_used_is_skipped(tmp_path: Path, location: str) -> None:
    odd: list[dict[str, Any]] = [
        {"file_name": "0.png", "question": " ", "answer": "red", "choices": ["red", "green"]},
        {"file_name": "none.png", "question": "what?", "answer": "red", "choices": ["red", "green"]},
        {"file_name": "cut.png", "question": "what?", "answer": "red", "choices": ["red", "green"]},
        {"file_name": "cut.png", "question": "who?", "answer": "red", "choices": ["red", "green"]},
        {"file_name": "0.png", "question": "what?", "answer": "blue", "choices": '["red", "green"]'},
        {"file_name": "0.png", "question": "what?", "answer": "red", "choices": "red"},
        {"file_name": "0.png", "question": "what?", "answer": "red", "choices": "red|green|red"},
        {"file_name": "0.png", "question": "what?", "answer": "red", "choices": '["red", '},
        {"file_name": "0.png", "question": "what?", "answer": "red", "choices": ["red", ""]},
        {"file_name": "0.png", "question": "what?", "answer": "red", "choices": {"a": 1}},
    ]
    files = question_files([*question_rows(9, **MORE), *(row | {"history": ""} for row in odd)], 9)
    files |= {"cut.png": encode_png(random_images(1)[0])[:-60], "more.png": encode_png(random_images(2)[1])}
    data, skipped, data_format = write_files(tmp_path / location, files), list[Any](), CHOICES
    rows = [*data_format.read(open_part(data), CONFIG, skipped)]
    train = data_format.encode(rows, data_format.make_processor(data, rows, CONFIG), CONFIG, skipped)
    assert len(train) == 27
    whys = [row.reason for row in skipped]
    assert whys[0] == "'question' is empty; fill it in or leave the row out"
    assert whys[1] == "no such file: none.png; fix the name or leave the row out"
    assert whys[2] == whys[3]
    assert "damaged or cut off" in whys[2]
    assert whys[4] == whys[5] == "'choices' needs two choices or more, each once; fix the row"
    assert whys[6].startswith("'choices' is not a list: ")
    assert whys[7] == "'choices' is empty; fill it in or leave the row out"
    assert whys[8] == "'choices' is not a list of choices, nor texts separated by bars; fix the row"
    assert whys[9] == "no row of metadata.jsonl names it; add a row, or remove the image"
    assert whys[10] == "the answer 'blue' is not among the choices; fix the row"


def test_an_answer_that_training_lacks_is_counted_as_wrong(tmp_path: Path) -> None:
    data = write_question_rows(tmp_path / "a", question_rows(9), 9)
    processor = prepared(ANSWERS, data, valid=data).processor
    rows = question_rows(2)
    rows[1]["answer"] = "mauve"
    other, facts = prepare_examples.prepare_eval_examples(
        ANSWERS, write_question_rows(tmp_path / "b", rows, 2), CONFIG, processor, print
    )
    assert (len(other), facts["skipped"]) == (6, 0)
    labels = other.examples.columns["label"].tolist()
    assert [label == IGNORE_INDEX for label in labels] == [row == 1 for row in range(6)]


def test_history_is_read_where_there_is_one(tmp_path: Path) -> None:
    rows = question_rows(6, history="")
    rows[4]["history"] = "one two three four five six seven eight nine"
    data = write_question_rows(tmp_path / "a", rows, 6)
    found = prepared(ANSWERS, data, valid=data)
    history = found.train.examples.columns["history"]
    assert history.lengths.tolist() == [1] * 4 + [8] + [1] * 13
    text = found.processor.source.text
    assert text.decode(history[4][:-1].tolist()).strip() == "three four five six seven eight nine"
    hidden = prepared(ANSWERS, data, valid=data, history="none")
    assert "history" not in hidden.train.examples.columns
    assert not hidden.processor.source.history
    bare = write_question_rows(tmp_path / "b", question_rows(6), 6)
    assert not prepared(ANSWERS, bare, valid=bare).processor.source.history
    with pytest.raises(UserError, match=r"no column with the history, which the model reads"):
        prepare_examples.prepare_eval_examples(ANSWERS, bare, CONFIG, found.processor, print)


@pytest.mark.parametrize("data_format", [ANSWERS, WRITTEN_ANSWERS, CHOICES])
def test_what_is_kept_reads_questions_alike(tmp_path: Path, data_format: PairFormat) -> None:
    data = write_question_rows(tmp_path / "a", question_rows(6, **MORE), 6)
    found = prepared(data_format, data, valid=data)
    for name, content in data_format.files(found.processor).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    opened = data_format.load_processor(tmp_path)
    assert data_format.files(opened) == data_format.files(found.processor)
    rows, asked_again, _ = prepare_examples.read_unlabeled(data_format, data, opened, CONFIG, print)
    assert rows[4].fields["source"] == f"{data}/1.png: what is thing 1?"
    right = found.train.examples.columns.keys() - asked_again.columns.keys()
    assert right == {"target" if data_format == WRITTEN_ANSWERS else "label"}
    every = [
        VQABatches(one, ImageEvalBatches(one.images, ImageConfig(batch_size=9)))
        for one in (found.train.examples, asked_again)
    ]
    first, second = (order.batch(0, 0).columns for order in every)
    assert all(torch.equal(column, first[name]) for name, column in second.items())


def test_parquet_holds_the_images_too(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = question_rows(4, choices=["red", "green", "blue"])
    images = [{"bytes": encode_png(random_images(4)[row // 3])} for row in range(12)]
    columns = {name: [row[name] for row in rows] for name in ("question", "answer", "choices")}
    path = tmp_path / "a.parquet"
    parquet.write_table(arrow.table({"image": images, **columns}), path)
    assert infer_task(open_path(str(path)), {}).name == "vqa-multiple-choice"
    train = prepared(CHOICES, str(path), valid=str(path)).train
    assert len(train.examples.images) == 4
    assert (train.examples.images[3] == random_images(4)[3]).all()
    assert train.references == [row["answer"] for row in rows]


@pytest.mark.parametrize("location", CONTAINERS)
def test_the_task_is_seen_from_the_table(tmp_path: Path, location: str) -> None:
    data = write_question_rows(tmp_path / location, question_rows(6), 6)
    assert infer_task(open_path(data), {}).name == "vqa"
    assert infer_task(open_path(data), {"answer": "file_name"}).name == "vqa"
    assert infer_task(open_path(data), {"answer": "reply"}).name == "image-classification"
    other = write_question_rows(tmp_path / f"other{location}", question_rows(6, **MORE), 6)
    assert infer_task(open_path(other), {}).name == "vqa-multiple-choice"


def test_a_column_that_is_not_there_is_named(tmp_path: Path) -> None:
    data = write_question_rows(tmp_path / "a", question_rows(6), 6)
    with pytest.raises(
        UserError, match=r"no column 'q' among file_name, question, answer; .*train with data\.question=NAME"
    ):
        prepared(ANSWERS, data, question="q")
    rows = [{"file_name": f"{n}.png", "question": "what?", "answer": f"answer {n}"} for n in range(9)]
    with pytest.raises(UserError, match=r"9 answers to 9 questions, too many to choose among"):
        prepared(ANSWERS, write_question_rows(tmp_path / "b", rows, 9), valid=data)
    (tmp_path / "c").mkdir()
    with pytest.raises(UserError, match=r"no metadata\.csv or metadata\.jsonl in it with the questions"):
        prepared(ANSWERS, str(tmp_path / "c"))
