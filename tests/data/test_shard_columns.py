"""The columns of rows of several tables that are shards."""

from pathlib import Path

import pytest
from PIL import Image

from foveal.data.core.rows import Row
from foveal.data.files.data_part import open_shards
from foveal.data.files.tables import read_rows
from foveal.data.images.image_arrays import read_shards
from foveal.data.pairs.own_columns import shard_columns
from foveal.tasks.vqa.data_settings import VQADataConfig
from foveal.tasks.vqa.question_files import read_question_rows


@pytest.mark.parametrize("names", [("0.csv", "1.csv"), ("a/d.csv", "b/d.csv")])
def test_columns_are_those_of_the_row_s_own_shard(
    names: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by relative paths without a folder, and if shards have the same name."""
    monkeypatch.chdir(tmp_path)
    shards = [Path(name) for name in names]
    for shard, row in zip(shards, ("first", "second"), strict=True):
        shard.parent.mkdir(exist_ok=True)
        shard.write_text(f"text,id\nx,{row}\n")
    rows = [row for shard in shards for row in read_rows(shard, ["text"])]
    assert [fields["id"] for fields in shard_columns(shards, "", rows)] == ["first", "second"]


def test_images_are_beside_their_own_shard_and_shards_may_have_the_same_name(tmp_path: Path) -> None:
    shards = [tmp_path / name / "d.csv" for name in "abc"]
    for shard in shards:
        shard.parent.mkdir()
        shard.write_text(f"image,question,answer,id\nx.png,what?,this,{shard.parent.name}\n")
        Image.new("RGB", (8, 8), (255 * "abc".index(shard.parent.name) // 2, 0, 0)).save(
            shard.parent / "x.png"
        )
    part = open_shards(shards)
    records = [*read_shards(part, ["image"])]
    rows = [Row(f"{part}, {location}", record) for _, location, record in records if isinstance(record, dict)]
    assert len({row.location for row in rows}) == 3
    assert [fields["id"] for fields in shard_columns(shards, "", rows)] == ["a", "b", "c"]
    read = read_question_rows(part, ("question", "answer"), VQADataConfig(), [])
    assert [int(row.fields["picture"].max()) for row in read] == [0, 127, 255]


def test_a_name_that_ends_like_another_shard_is_not_mistaken(tmp_path: Path) -> None:
    shards = [tmp_path / name for name in ("a.csv", "b.csv", "c, b.csv")]
    for shard in shards:
        shard.write_text(f'text,id\nx,"{shard.name}"\n')
    rows = [Row(f"{shards[0]}, {name}line 2", {"text": "x"}) for name in ("", "b.csv, ", "c, b.csv, ")]
    assert [fields["id"] for fields in shard_columns(shards, "", rows)] == [shard.name for shard in shards]


def test_rows_of_json_without_a_column_keep_the_others(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('[{"text": "x", "id": 1}, {"text": "y"}, 3]')
    rows = [Row(f"{path}, object {number}", {"text": ""}) for number in (1, 2, 3)]
    assert shard_columns([path], "", rows) == [{"text": "x", "id": 1}, {"text": "y"}, {}]
