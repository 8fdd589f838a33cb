"""Images in a zip within a zip, as some downloads are."""

import zipfile
from pathlib import Path

import pytest

from tests.support.command_line import succeed, table_rows
from tests.support.labeled_images import write_images


def pack(name: str, files: list[Path]) -> None:
    """Write a zip of files."""
    with zipfile.ZipFile(name, "w") as archive:
        for file in files:
            archive.write(file)


def test_a_zip_in_a_zip_is_unpacked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    write_images("a", 8)
    pack("b.zip", [*Path("a").rglob("*.*")])
    pack("data.zip", [Path("b.zip")])
    succeed("train", "data.zip", "data.image.size=32", "--pretrained", "no", "--run", "run")
    answers = [row["answer"] for row in table_rows(succeed("predict", "run", "data.zip").out)]
    assert len(answers) == 8
    assert {*answers} <= {"red", "blue"}
