"""Splits are disjoint and complete, keep equal texts together, and depend on content alone."""

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveal.core.errors import UserError
from foveal.data.core.hash_split import split_of_text
from foveal.data.files.data_part import open_part
from foveal.data.text.corpus import FileContent, open_text_source
from foveal.data.text.corpus_split import assign_splits, split_documents

SHARES = {"valid": 0.1, "test": 0.2}


def parts_of(path: Path, fractions: dict[str, float] = SHARES) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for part, document in split_documents(open_text_source(open_part(str(path)), "text"), fractions):
        found.setdefault(part, []).append("".join(document.pieces))
    return found


@given(
    text=st.text(st.sampled_from("ab é日🙂\n"), min_size=1, max_size=300),
    valid=st.floats(0.01, 0.49),
    test=st.floats(0.01, 0.49),
)
def test_a_file_is_cut_by_position_and_nothing_is_lost(
    text: str, valid: float, test: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("cut") / "a.txt"
    path.write_text(text)
    found = parts_of(path, {"valid": valid, "test": test})
    assert [*found] == ["train", "valid", "test"]
    assert "".join(text for part in found.values() for text in part) == text


def test_a_file_is_cut_at_line_ends_near_the_shares(tmp_path: Path) -> None:
    text = "".join(f"line {i} " + "x" * (i * 7 % 50) + "\n" for i in range(500))
    (tmp_path / "a.txt").write_text(text)
    found = {part: texts[0] for part, texts in parts_of(tmp_path / "a.txt").items()}
    assert all(part.endswith("\n") for part in found.values())
    for part, share in {"train": 0.7, **SHARES}.items():
        assert len(found[part]) == pytest.approx(share * len(text), abs=60)


def test_a_file_of_one_line_is_cut_between_characters(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("é" * 1000)
    found = {part: texts[0] for part, texts in parts_of(tmp_path / "a.txt").items()}
    assert {part: len(text) for part, text in found.items()} == {"train": 700, "valid": 100, "test": 200}


def write_files(folder: Path, contents: dict[str, str]) -> Path:
    folder.mkdir()
    for name, content in contents.items():
        (folder / name).write_text(content)
    return folder


def test_files_stay_whole_and_equal_ones_together(tmp_path: Path) -> None:
    contents = {f"{i}.txt": f"file {i % 20}\n" * (i % 20 + 1) for i in range(40)}
    found = parts_of(write_files(tmp_path / "a", contents))
    assert sorted(text for texts in found.values() for text in texts) == sorted(contents.values())
    assert not set(found["train"]) & set(found["valid"])
    assert not set(found["train"]) & set(found["test"])
    assert not set(found["valid"]) & set(found["test"])
    total = sum(map(len, contents.values()))
    for part, share in SHARES.items():
        assert sum(map(len, found[part])) == pytest.approx(share * total, abs=0.06 * total)


def test_names_and_order_of_files_do_not_matter(tmp_path: Path) -> None:
    contents = [f"file {i}\n" * (i + 1) for i in range(30)]
    found = parts_of(write_files(tmp_path / "a", {f"{i}.txt": text for i, text in enumerate(contents)}))
    renamed = {f"{random.Random(i).random()}.md": text for i, text in enumerate(contents)}
    again = parts_of(write_files(tmp_path / "b", renamed))
    assert {part: Counter(texts) for part, texts in found.items()} == {
        part: Counter(texts) for part, texts in again.items()
    }


@given(
    sizes=st.lists(st.integers(1, 1000), min_size=3, max_size=40),
    valid=st.floats(0.01, 0.49),
    test=st.floats(0.01, 0.49),
)
def test_every_part_has_a_file(sizes: list[int], valid: float, test: float) -> None:
    alike = [[FileContent(Path(str(i)), f"{i:04}", size)] for i, size in enumerate(sizes)]
    parts = Counter(assign_splits(alike, {"valid": valid, "test": test}).values())
    assert parts["valid"] >= 1
    assert parts["test"] >= 1
    assert parts.total() < len(sizes)


def test_a_giant_file_is_trained_on() -> None:
    sizes = [900, *[10] * 10]
    alike = [[FileContent(Path(str(i)), f"{i:04}", size)] for i, size in enumerate(sizes)]
    assert "0000" not in assign_splits(alike, {"valid": 0.05, "test": 0.05})


@pytest.mark.parametrize("count", [1, 2])
def test_a_folder_of_too_few_files_is_cut_by_position(count: int, tmp_path: Path) -> None:
    contents = {f"{i}.txt": f"line of file {i}\n" * 100 for i in range(count)}
    found = parts_of(write_files(tmp_path / "a", contents))
    assert [len(found[part]) for part in ("train", "valid", "test")] == [count] * 3
    for i in range(count):
        assert "".join(found[part][i] for part in ("train", "valid", "test")) == contents[f"{i}.txt"]


def test_rows_go_by_their_text(tmp_path: Path) -> None:
    rows = [f"row {i % 1500}" for i in range(2000)]
    random.Random(0).shuffle(rows)
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"text": row}) + "\n" for row in rows))
    found = parts_of(path)
    assert Counter(text for texts in found.values() for text in texts) == Counter(rows)
    assert not set(found["train"]) & {*found["valid"], *found["test"]}
    assert not set(found["valid"]) & set(found["test"])
    for part, share in SHARES.items():
        assert len(found[part]) == pytest.approx(share * len(rows), rel=0.2)
    path.write_text("".join(json.dumps({"id": 0, "text": row}) + "\n" for row in reversed(rows)))
    again = parts_of(path)
    assert {part: texts[::-1] for part, texts in again.items()} == found


def test_a_larger_share_only_takes_from_training() -> None:
    rows = [f"row {i}" for i in range(500)]
    small = {row for row in rows if split_of_text(row, {"valid": 0.1}) == "valid"}
    large = {row for row in rows if split_of_text(row, {"valid": 0.3}) == "valid"}
    assert small < large


def test_without_shares_all_is_training(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello\n" * 9)
    assert parts_of(tmp_path / "a.txt", {}) == {"train": ["hello\n" * 9]}


def test_shares_that_leave_nothing_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello\n" * 9)
    with pytest.raises(
        UserError, match=r"data\.valid_fraction=0\.5 \+ data\.test_fraction=0\.5 leaves nothing"
    ):
        parts_of(tmp_path / "a.txt", {"valid": 0.5, "test": 0.5})
