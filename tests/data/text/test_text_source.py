"""Texts of a table with their targets."""

from pathlib import Path
from typing import Any

from foveal.config import DataConfig
from foveal.data.core.fields import Fields
from foveal.data.core.rows import SkippedRow
from foveal.data.files.data_part import open_part
from foveal.data.pairs.labels import LabelTarget
from foveal.data.text.text_source import TextSource


class StarsTarget(LabelTarget):
    """`high` from three stars, `low` below."""

    def parse(self, column: str, value: Any) -> Fields | str:
        if not value.isdecimal():
            return f"'{column}' is no number"
        return {self.field: "high" if int(value) >= 3 else "low"}


def test_the_target_parses_its_column(tmp_path: Path) -> None:
    path, skipped = tmp_path / "stars.csv", list[SkippedRow]()
    path.write_text("text,label\na film,4\na play,2\na poem,many\n")
    rows = TextSource().read(open_part(str(path)), StarsTarget(), DataConfig(), skipped)
    assert [(row.fields["source"], row.fields["label"]) for row in rows] == [
        ("a film", "high"),
        ("a play", "low"),
    ]
    assert [row.reason for row in skipped] == ["'label' is no number"]
