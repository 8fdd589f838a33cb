"""The columns of rows of several tables that are shards."""

from pathlib import Path

import pytest

from foveal.data.files.tables import read_rows
from foveal.data.pairs.own_columns import shard_columns


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
