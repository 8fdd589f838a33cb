"""Pictures of other shapes and modes than those learnt of, given to a run that writes, one that chooses."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from tests.support import captioned_shapes, shape_questions
from tests.support.command_line import succeed

ALIKE = ("CMYK.tif", "P.tif", "RGB.tif", "RGBA.tif")
ASKED = (*ALIKE, "grey.tif", "tall.tif")


def write_odd(folder: str = "asked") -> str:
    """One picture of 400 x 90 in four modes, whose colours each of them can say; and two others."""
    Path(folder).mkdir()
    wide = Image.new("RGB", (400, 90), (51, 0, 102))
    ImageDraw.Draw(wide).rectangle((40, 30, 300, 60), (204, 51, 51))
    for name in ALIKE:
        wide.convert(Path(name).stem).save(f"{folder}/{name}")
    steps = np.arange(900, dtype=np.uint16).reshape(30, 30) * 70
    Image.fromarray(steps).save(f"{folder}/grey.tif")  # 16 bits
    wide.rotate(90, expand=True).save(f"{folder}/tall.tif")
    return folder


def test_they_are_captioned() -> None:
    """How probable each text is says whether the same was seen."""
    captioned_shapes.train(captioned_shapes.write_shapes(count=60), steps=4)
    told = succeed("generate", "run", "--input", write_odd(), "--attention", "looked.png", "--json")
    samples = json.loads(told.out)["samples"]
    seen = {Path(one["source"]).name: one["log_probability"] for one in samples}
    assert sorted(seen) == sorted(ASKED)
    assert [seen[name] for name in ALIKE] == pytest.approx([seen["RGB.tif"]] * len(ALIKE), rel=1e-4)
    assert len({round(seen[name], 6) for name in ("RGB.tif", "grey.tif", "tall.tif")}) == 3
    with Image.open("looked.png") as picture:
        assert picture.height > 0


@pytest.mark.slow
def test_questions_about_them_are_answered() -> None:
    shape_questions.train(shape_questions.write_questions(), steps=40)
    rows = "".join(f"{name},what colour is it?\n" for name in ASKED)
    Path(write_odd(), "metadata.csv").write_text(f"file_name,question\n{rows}")
    found = json.loads(succeed("predict", "run", "asked", "--json").out)["predictions"]
    assert [one["source"] for one in found] == [f"asked/{name}: what colour is it?" for name in ASKED]
    answers = dict(zip(ASKED, (one["output"] for one in found), strict=True))
    assert {answers[name] for name in (*ALIKE, "tall.tif")} == {"red"}
    assert answers["grey.tif"] in captioned_shapes.COLOURS
