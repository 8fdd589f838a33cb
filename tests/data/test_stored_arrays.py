"""Stored images and series: equal to those in memory, decoded once, and not held in memory."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from foveal.config import DataConfig
from foveal.data import example_store, prepare_examples, workspace
from foveal.data.core import row_table
from foveal.data.core.columns import ShapedArrays
from foveal.data.core.prepared_data import NO_REUSE, PreparedData, ReusedProcessors
from foveal.data.pairs.pair import PairFormat, PairProcessor
from tests.support.labeled_images import write_images
from tests.support.pair_formats import IMAGE_LABEL, IMAGE_TEXT, SERIES_LABEL, SERIES_LABELS
from tests.support.small_series import write_steps, write_ts

Prepared = PreparedData[PairProcessor, Any]
SETTINGS: dict[str, Any] = {
    "image": {"size": 12, "batch_size": 7},
    "augment": {"crop": "pad", "flip": True},
    "batch_tokens": 60,
    "valid_fraction": 0.2,
    "test_fraction": 0.2,
    "tokenizer": "character",
}


def write_copies() -> str:
    """Write images, of which some are the same, and a file that is none."""
    folder = Path(write_images(count=40))
    for number in (4, 8):
        shutil.copy(folder / "blue" / f"{number}.png", folder / "blue" / f"{number}-copy.png")
    (folder / "red" / "text.png").write_text("no image")
    return str(folder)


def write_captions() -> str:
    """Write images with three texts each. Two of them follow each other, and one stands far away."""
    folder = Path(write_images(count=30))
    files = sorted(path.relative_to(folder) for path in folder.glob("*/*"))
    rows = [f"{file},{word} {number}" for number, file in enumerate(files) for word in ("a", "the")]
    rows += [f"{file},again {number}" for number, file in enumerate(files)]
    (folder / "metadata.csv").write_text("\n".join(["file_name,text", *rows, ""]))
    return str(folder)


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return what makes the examples of any data be stored, in several chunks."""
    monkeypatch.chdir(tmp_path)

    def store() -> None:
        monkeypatch.setattr(example_store, "MIN_STORED_BYTES", 0)
        monkeypatch.setattr(workspace, "CHUNK_ROWS", 9)
        monkeypatch.setattr(row_table, "BUFFERED_ROWS", 7)
        monkeypatch.setattr(row_table, "BUFFERED_BYTES", 3000)

    return store


def prepare(data_format: PairFormat, data: str, log: Callable[[str], None], **settings: Any) -> Prepared:
    reused = settings.pop("reused", NO_REUSE)
    config = DataConfig(**SETTINGS | settings)
    return prepare_examples.prepare_examples(data_format, data, None, None, config, log, reused=reused)


def batches_of(prepared: Prepared, data_format: PairFormat) -> list[Any]:
    config, result = DataConfig(**SETTINGS), []
    for split in (prepared.train, prepared.valid, prepared.test):
        assert split is not None
        training = data_format.source.train_batches(split.examples, config, 3)
        batches = [training.batch(epoch, i) for epoch in (0, 1) for i in range(training.per_epoch)]
        evaluation = data_format.source.eval_batches(split.examples, config)
        batches += [evaluation.batch(0, i) for i in range(evaluation.per_epoch)]
        for batch in batches:
            tensors = {"rows": batch.rows, **batch.columns, **batch.lengths}
            result.append({name: (value.dtype, value.tolist()) for name, value in tensors.items()})
    return result


@pytest.mark.parametrize(
    ("data_format", "write"),
    [
        (IMAGE_LABEL, write_copies),
        (IMAGE_TEXT, write_captions),
        (SERIES_LABEL, write_ts),
        (SERIES_LABELS, write_steps),
    ],
    ids=["images", "captions", "series", "steps"],
)
def test_stored_examples_equal_those_in_memory(
    data_format: PairFormat, write: Callable[[], str], stored: Callable[[], None]
) -> None:
    data = write()
    lines: dict[str, list[str]] = {"memory": [], "written": [], "read": []}
    in_memory = prepare(data_format, data, lines["memory"].append)
    stored()
    for name in ("written", "read"):
        prepared = prepare(data_format, data, lines[name].append)
        assert batches_of(prepared, data_format) == batches_of(in_memory, data_format)
        assert (prepared.facts, prepared.skipped) == (in_memory.facts, in_memory.skipped)
        assert data_format.files(prepared.processor) == data_format.files(in_memory.processor)
        for split in ("train", "valid", "test"):
            one, other = getattr(prepared, split), getattr(in_memory, split)
            for column in ("sources", "references", "lengths", "content_hashes"):
                assert [*getattr(one, column)] == [*getattr(other, column)], column
        assert lines[name] == lines["memory"]


@pytest.mark.parametrize(
    ("data_format", "write"),
    [(IMAGE_LABEL, write_copies), (SERIES_LABEL, write_ts)],
    ids=["images", "series"],
)
def test_processors_of_an_earlier_run_are_reused(
    data_format: PairFormat, write: Callable[[], str], stored: Callable[[], None]
) -> None:
    data = write()
    stored()
    first = prepare(data_format, data, print)
    reused = ReusedProcessors(first.processor.source, first.processor.target.labels)
    for _ in ("written", "read"):
        again = prepare(data_format, data, print, reused=reused)
        assert data_format.files(again.processor) == data_format.files(first.processor)
        assert batches_of(again, data_format) == batches_of(first, data_format)


def test_images_are_decoded_once_and_stay_in_files(
    stored: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_captions()
    stored()
    first = prepare(IMAGE_TEXT, data, print)
    monkeypatch.delattr(prepare_examples, "read_splits")
    again = prepare(IMAGE_TEXT, data, print, image={"size": 12, "batch_size": 5}, augment={})
    assert again.train.sha256 == first.train.sha256
    images = again.train.examples.unique_images
    assert isinstance(images, ShapedArrays)
    assert not images.flat.values.flags.owndata
    assert len(images) == again.train.sizes["images"] == len(again.train) / 3, "each is stored once"
