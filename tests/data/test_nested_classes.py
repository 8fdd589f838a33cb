"""Folders with two readings: outer or inner folders as classes, files of lines named by labels."""

import subprocess
from pathlib import Path

import pytest

from foveal.core.errors import UserError
from foveal.data.open import open_path
from foveal.tasks.infer import infer_task
from tests.support.class_folders import FOLDERS, LABELS, PER_CLASS, files_by_class, labels_by_split
from tests.support.image_folders import write_files

OUTER = [("0", "1", "2"), ("subject1", "subject2"), ("set_a", "set_b"), ("1_train", "2_query")]


@pytest.mark.parametrize("kind", ["pictures", "recordings", "texts"])
@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("reading", ["inner", "outer"])
def test_two_readings_are_refused_with_a_command_each(
    kind: str, outer: tuple[str, ...], reading: str, tmp_path: Path
) -> None:
    if kind == "texts" and outer != OUTER[0]:
        pytest.skip("texts may be a tree of one corpus")
    files = {f"{o}/{name}": content for o in outer for name, content in files_by_class(kind).items()}
    with pytest.raises(UserError, match=r"cat, dog are in each of .* if cat, dog are the classes") as refused:
        infer_task(open_path(write_files(tmp_path / "a b", files)), {})
    _, inner, rest = str(refused.value).split(": cd ")
    command = inner.partition("; if ")[0] if reading == "inner" else rest.partition(" (if they")[0]
    subprocess.run(["sh", "-euc", f"cd {command}"], check=True, capture_output=True)
    classes = dict.fromkeys(LABELS, len(outer) * PER_CLASS) if reading == "inner" else {}
    classes = classes or dict.fromkeys(sorted(outer), len(LABELS) * PER_CLASS)
    assert labels_by_split(str(tmp_path / "a b")) == {"train": classes}
    if kind != "texts" or reading == "inner":
        assert infer_task(open_path(str(tmp_path / "a b")), {}).name == FOLDERS[kind].task


def test_clips_of_the_same_names_are_no_two_readings(tmp_path: Path) -> None:
    files = {
        f"{label}/v{n % 4}/{name.rpartition('/')[2]}": content
        for label in LABELS
        for n, (name, content) in enumerate(sorted(files_by_class("clips").items()))
    }
    assert open_path(write_files(tmp_path / "a", files)).kind == "clips"


@pytest.mark.parametrize("names", [("rt-polarity.pos", "rt-polarity.neg"), ("ham.txt", "spam.txt")])
def test_a_file_of_lines_for_each_label_is_refused_with_a_command(
    names: tuple[str, str], tmp_path: Path
) -> None:
    lines = b"".join(b"some text number %d\tof it\n" % number for number in range(9))
    with pytest.raises(UserError, match="look like texts of two labels, one a line") as refused:
        infer_task(open_path(write_files(tmp_path / "a b", dict.fromkeys(names, lines))), {})
    command = "awk " + str(refused.value).partition(": awk ")[2].partition(". To learn it as it is")[0]
    subprocess.run(["sh", "-euc", command], check=True, capture_output=True)
    table = open_path(str(tmp_path / "a b.tsv"))
    assert infer_task(table, {}).name == "text-classification"
    assert len((tmp_path / "a b.tsv").read_text().splitlines()) == 19
