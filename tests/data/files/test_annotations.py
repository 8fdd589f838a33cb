"""Which text files beside pictures are boxes of objects."""

import time
from pathlib import Path

import pytest

from foveal.data.files.annotations import annotation_error
from foveal.data.files.data_part import open_part

LONG = "0 " + "0.123456 " * 6000


@pytest.mark.parametrize(
    ("text", "are_boxes"),
    [
        ("0 0.5 0.5 0.2 0.1\n\n12 .5 5e-1 -0.2 1\n", True),
        ("0 0.1 0.1 0.2 0.1 0.2 0.2\n", True),
        (LONG + "nan", True),
        (2 * LONG, True),  # more than the bytes that are looked at, in one line
        ("1 0.5 0.5 0.2 0.1\n" * 9000, True),
        (LONG + "dog", False),
        ("0 0.5 0.5 0.2\n", False),
        ("0.5 0.5 0.5 0.2 0.1\n", False),
        ("2 dogs on the beach run\n", False),
        (" \n", False),
        ("", False),
    ],
)
def test_boxes_are_lines_of_numbers(text: str, are_boxes: bool, tmp_path: Path) -> None:
    """Whatever the numbers are, the answer comes at once."""
    for folder in ("images", "labels"):
        (tmp_path / folder).mkdir()
    (tmp_path / "images/1.png").write_bytes(b"a")
    (tmp_path / "labels/1.txt").write_text(text)
    start = time.perf_counter()
    assert ("has boxes (YOLO)" in annotation_error(open_part(str(tmp_path)), (".png",))) is are_boxes
    assert time.perf_counter() - start < 1
