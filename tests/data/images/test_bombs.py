"""Bombs: refused by name in a second, with little memory, and without a word on standard error."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.archive_bombs import CANARY, SETS
from tests.support.image_bombs import LARGEST, READ, REFUSED

NAMES = [*REFUSED, *READ, *SETS]
MEASURE = """
import json, sys
from pathlib import Path
from time import process_time
from PIL import Image
from foveal.core.errors import UserError
from foveal.data.files.data_part import open_part
from foveal.data.images.image_files import labeled_images, load_image, unlabeled_images
from foveal.data.core.rows import Row
from tests.support.image_bombs import LARGEST, READ, REFUSED
from tests.support.archive_bombs import SETS

def memory(of):
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(of)).split()[1])

def read(path):
    is_set = path.name in SETS
    try:
        part = open_part(str(path))
        for row in labeled_images(part, "label") if is_set else unlabeled_images(part):
            if not isinstance(row, Row):
                return f"{row.location}: {row.reason}"
            picture = load_image(row.fields["image"], 32, 3)
            if isinstance(picture, str):
                return f"{row.location}: {picture}"
    except UserError as error:
        return str(error)
    return ""

Image.init()
largest = {f"largest {name}": make for name, make in LARGEST.items()}
for name, make in (REFUSED | READ | SETS | largest).items():
    path = Path(sys.argv[1], name)
    if name in SETS:
        make(path)
    else:
        path.write_bytes(make())
    Path("/proc/self/clear_refs").write_text("5")  # what was most is now
    before, start = memory("VmRSS"), process_time()
    told, seconds = read(path), process_time() - start
    most = memory("VmHWM") - before
    print(json.dumps([name, {"told": told, "kib": most, "seconds": seconds, "size": path.stat().st_size}]))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """By name what was told of each, in processor seconds and KiB, all in a process of their own."""
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("memory is measured on Linux")
    folder = tmp_path_factory.mktemp("bombs")
    command = [sys.executable, "-W", "error", "-c", MEASURE, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert not (folder / CANARY).exists()
    return dict(json.loads(line) for line in done.stdout.splitlines())


@pytest.mark.parametrize("name", NAMES)
def test_bounds(found: dict[str, Any], name: str) -> None:
    one = found[name]
    assert one["size"] <= 1_000_000
    assert one["seconds"] <= 1
    assert one["kib"] <= 150 * 1024
    if name in READ:
        assert one["told"] == ""
    else:
        place = one["told"].split(": ")[0]
        assert name in place
        assert "; " in one["told"]  # how to fix it
        assert "\n" not in one["told"]


@pytest.mark.parametrize("name", LARGEST)
def test_what_is_just_small_enough(found: dict[str, Any], name: str) -> None:
    one = found[f"largest {name}"]
    assert one["told"] == ""
    assert one["kib"] <= 150 * 1024


def test_there_are_many() -> None:
    assert len(NAMES) - len(READ) >= 40


@pytest.mark.parametrize("name", [name for name in REFUSED if "many" in name or "header" in name])
def test_why(found: dict[str, Any], name: str) -> None:
    assert "too many" in found[name]["told"]
