"""Stored examples: equal to those in memory, prepared once, rebuilt when damaged, and not held in memory."""

import json
import os
import signal
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.data import example_store, prepare_examples, workspace
from foveal.data.core import columns, row_table
from foveal.data.core.length_groups import GroupedExamples
from foveal.data.core.prepared_data import PreparedData
from foveal.data.pairs.pair import PairFormat, PairProcessor
from foveal.store.cache import cache_folder
from foveal.tasks.tagging import TagsDataConfig
from tests.support.pair_formats import TAGGED_WORDS, TEXT_LABEL, TEXT_PAIRS

Prepared = PreparedData[PairProcessor, Any]


def number_words(number: int) -> str:
    return " ".join(f"w{number % base}" for base in (7, 11, 2 + number % 13, 997))


def write_rows(path: Path, count: int) -> Path:
    """Rows of all three formats: some equal, some contradicting, some that can't be used."""
    rows = []
    for number in range(count):
        text = number_words(number % (count // 2 + 1) if number % 5 == 0 else number)
        words, label = text.split(), ("good", "bad")[number % 2]
        target = f"ünd {text.upper()}" if number % 3 else "x " * 40
        row = {"text": text, "label": label, "source": text, "target": target, "tokens": words}
        row["tags"] = [word[-1] for word in words]
        rows.append(dict.fromkeys(row) if number == 13 else row)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "rows.jsonl", 600)


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Store the examples of any data, in several chunks."""
    monkeypatch.setattr(example_store, "MIN_STORED_BYTES", 0)
    monkeypatch.setattr(workspace, "CHUNK_ROWS", 50)
    monkeypatch.setattr(row_table, "BUFFERED_ROWS", 70)
    monkeypatch.setattr(columns, "BLOCK_NUMBERS", 100)


def prepare(
    path: Path | str,
    data_format: PairFormat = TEXT_LABEL,
    log: Callable[[str], None] = print,
    **settings: Any,
) -> Prepared:
    processor = settings.pop("processor", None)
    config = (TagsDataConfig if data_format is TAGGED_WORDS else DataConfig)(**{"max_length": 60} | settings)
    return prepare_examples.prepare_examples(data_format, str(path), None, None, config, log, processor)


def batches_of(prepared: Prepared, data_format: PairFormat) -> list[dict[str, list[Any]]]:
    config = DataConfig(batch_tokens=500)
    result = []
    for split in (prepared.train, prepared.valid, prepared.test):
        assert split is not None
        training = data_format.source.train_batches(split.examples, config, 3)
        batches = [training.batch(epoch, i) for epoch in (0, 1) for i in range(training.per_epoch)]
        evaluation = data_format.source.eval_batches(split.examples, config)
        batches += [evaluation.batch(0, i) for i in range(evaluation.per_epoch)]
        for batch in batches:
            assert {column.dtype for column in batch.columns.values()} == {torch.int64}
            tensors = {"rows": batch.rows, "tokens": batch.row_tokens, **batch.columns}
            lengths = {f"length {name}": length for name, length in batch.lengths.items()}
            result.append({name: value.tolist() for name, value in (tensors | lengths).items()})
    return result


@pytest.mark.parametrize("data_format", [TEXT_LABEL, TEXT_PAIRS, TAGGED_WORDS], ids=["label", "pair", "tags"])
@pytest.mark.parametrize("tokenizer", ["character", "bpe"])
def test_stored_examples_equal_those_in_memory(
    data_format: PairFormat, tokenizer: str, path: Path, request: pytest.FixtureRequest
) -> None:
    settings = {"tokenizer": tokenizer, "vocab_size": 300}
    lines: dict[str, list[str]] = {"memory": [], "written": [], "read": []}
    in_memory = prepare(path, data_format, lines["memory"].append, **settings)
    request.getfixturevalue("stored")
    for name in ("written", "read"):
        prepared = prepare(path, data_format, lines[name].append, **settings)
        assert isinstance(prepared.train.examples, GroupedExamples)
        assert batches_of(prepared, data_format) == batches_of(in_memory, data_format)
        assert prepared.facts == in_memory.facts
        assert json.loads(json.dumps(prepared.facts)) == prepared.facts
        assert prepared.skipped == in_memory.skipped != ()
        assert data_format.files(prepared.processor) == data_format.files(in_memory.processor)
        for split in ("train", "valid", "test"):
            one, other = getattr(prepared, split), getattr(in_memory, split)
            for column in ("sources", "references", "lengths"):
                assert [*getattr(one, column)] == [*getattr(other, column)]
                assert getattr(one, column)[2:5] == getattr(other, column)[2:5]
        assert lines[name] == lines["memory"]
    assert any("another label" in line for line in lines["read"]) == (data_format is TEXT_LABEL)


@pytest.mark.usefixtures("stored")
def test_rows_are_read_once_until_they_change(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = prepare(path)
    with monkeypatch.context() as patch:
        patch.delattr(prepare_examples, "read_splits")
        again = prepare(path)
        resumed = prepare(path, processor=first.processor)  # as a run does that goes on
        other_batches = prepare(path, batch_tokens=77)
        relative = prepare(os.path.relpath(path))
    for prepared in (again, resumed, other_batches, relative):
        assert prepared.train.sha256 == first.train.sha256
    assert prepare(path, max_length=5).train.sizes != first.train.sizes
    write_rows(path, 500)
    assert len(prepare(path).train) < len(first.train)


@pytest.mark.usefixtures("stored")
def test_a_damaged_store_is_named_and_written_again(path: Path) -> None:
    first, lines = batches_of(prepare(path), TEXT_LABEL), list[str]()
    (values,) = cache_folder().glob("examples/*/train-examples.source.values")
    content = bytearray(values.read_bytes())
    content[1000] ^= 1
    values.write_bytes(content)
    again = prepare(path, log=lines.append)
    assert lines.count(f"{values}: damaged or edited, so the data are prepared again") == 1
    assert batches_of(again, TEXT_LABEL) == first


@pytest.mark.usefixtures("stored")
def test_a_killed_preparation_goes_on_from_the_rows_that_were_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill_at(chunk: int) -> None:
        """Prepare in a child that is killed while it encodes a chunk."""
        seen = []
        encode = PairFormat.encode

        def encode_or_die(*arguments: Any) -> Any:
            seen.append(1)
            if len(seen) == chunk:
                os.kill(os.getpid(), signal.SIGKILL)
            return encode(*arguments)

        if not (child := os.fork()):
            PairFormat.encode = encode_or_die  # type: ignore[assignment, method-assign]
            prepare(path)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL

    kill_at(3)
    assert [*cache_folder().glob("examples/*/facts.json")] == []  # nothing half-written is taken for whole
    assert len([*cache_folder().glob("rows/*/facts.json")]) == 1
    with monkeypatch.context() as patch:
        patch.delattr(prepare_examples, "read_splits")
        prepared = prepare(path)
    monkeypatch.setattr(example_store, "MIN_STORED_BYTES", 1 << 40)
    assert batches_of(prepared, TEXT_LABEL) == batches_of(prepare(path), TEXT_LABEL)
    assert [*cache_folder().glob("rows/*")] == []


@pytest.mark.usefixtures("stored")
def test_refused_data_leave_no_store(tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text("text,label\n" + "".join(f"text {i},same\n" for i in range(50)))
    for _ in range(2):
        with pytest.raises(UserError, match="same"):
            prepare(path)
    assert [*cache_folder().glob("examples/*/facts.json")] == []


def test_few_rows_are_not_stored(path: Path) -> None:
    prepare(path)
    assert not (cache_folder() / "examples").exists()


def python_bytes_of_second_start(path: Path, count: int) -> int:
    """Return the most bytes that Python allocates while data that are prepared start, with a first batch."""
    write_rows(path, count)
    prepare(path)
    tracemalloc.start()
    try:
        batches = TEXT_LABEL.source.train_batches(prepare(path).train.examples, DataConfig(), 1)
        batches.batch(0, 0)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.usefixtures("stored")
def test_a_second_start_does_not_grow_with_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, "CHUNK_ROWS", 4096)
    small, large = (python_bytes_of_second_start(tmp_path / "rows.jsonl", count) for count in (1_000, 10_000))
    assert large < small + 9_000 * 24  # a Python text alone takes more


@pytest.mark.slow
def test_a_second_start_of_many_rows_takes_no_more_memory(tmp_path: Path) -> None:
    """Of a block of rows of similar lengths, a batch needs the order."""
    sizes = [python_bytes_of_second_start(tmp_path / "rows.jsonl", count) for count in (200_000, 1_000_000)]
    assert sizes[1] < sizes[0] + (1 << 23)


def test_numbers_get_a_larger_type_when_they_need_it(tmp_path: Path) -> None:
    writer = columns.ArrayWriter(tmp_path / "numbers")
    parts = [np.arange(5), np.arange(-3, 300), np.zeros(0, np.int64), np.array([70_000]), np.array([1 << 40])]
    for part in parts:
        writer.write(part)
    kind, shape = writer.close()
    assert [kind, shape] == ["<i8", []]
    assert np.fromfile(tmp_path / "numbers", kind).tolist() == np.concatenate(parts).tolist()
