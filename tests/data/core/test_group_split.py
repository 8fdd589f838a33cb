"""Rows that belong together: held out together, or every third of them."""

from collections import defaultdict
from pathlib import Path

import pytest

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.data import prepare_examples
from foveal.data.core.group_split import row_groups, split_by_group
from foveal.data.core.rows import Row
from foveal.data.files.data_part import open_part
from tests.support.pair_formats import IMAGE_TEXT, TEXT_PAIRS

TONES = ("", ": light skin tone", ": dark skin tone", ": dark skin tone, red hair")
PATTERN = r"\W|[\w-]+ skin tone"


def row(source: str, target: str) -> Row:
    return Row("table, line 2", {"source": source, "target": target}, source)


def people(count: int, variants: int = 4) -> list[Row]:
    """`count` people in up to four variants; the fourth has other hair."""
    return [row(f"{n} in {v}", f"person {n}{TONES[v]}") for n in range(count) for v in range(variants)]


def config(hold_out: str, pattern: str = PATTERN) -> DataConfig:
    return DataConfig.model_validate({"group_pattern": pattern, "hold_out": hold_out})


def test_whole_groups_are_held_out() -> None:
    shares = {"valid": 0.1, "test": 0.2}
    rows = people(400)
    sides: dict[str, set[str]] = defaultdict(set)
    counts: dict[str, int] = defaultdict(int)
    for part, found in split_by_group(rows, config("groups"), shares):
        person = found.fields["target"].split(":")[0] + ("red" if "red" in found.fields["target"] else "")
        sides[person].add(part)
        counts[part] += 1
    assert len(sides) == 800
    assert all(len(found) == 1 for found in sides.values())
    assert all(abs(counts[part] / 1600 - share) < 0.03 for part, share in shares.items())
    parts_of = {
        found.fields["source"]: part for part, found in split_by_group(rows, config("groups"), shares)
    }
    again = split_by_group(rows[::-1], config("groups"), shares)  # neither order nor names matter
    assert {found.fields["source"]: part for part, found in again} == parts_of


def test_equal_sources_bind_groups() -> None:
    """One picture under two names, and all that is like either."""
    rows = [row("a", "x: 1"), row("b", "x: 2"), row("b", "y: 1"), row("c", "y: 2"), row("d", "z: 1")]
    groups = row_groups(rows, r": \d")
    assert len(set(groups[:4])) == 1
    assert groups[4] != groups[0]
    assert row_groups(rows[::-1], r": \d") == groups[::-1]


def test_names_of_files_bind() -> None:
    rows = [
        Row("line 2", {"source": n, "target": n, "name": f"photos-a/{n}"}, n)
        for n in ("cat-a.png", "cat-b.png", "dog-a.png")
    ]
    groups = row_groups(rows, "-[ab]", "file-name")
    assert groups[0] == groups[1] != groups[2]
    with pytest.raises(UserError, match="matches no file-name"):
        row_groups(rows, "photos", "file-name")  # of the file's own name
    with pytest.raises(
        UserError, match=r"compares names of files \(data\.group_by=file-name\), and this task has none"
    ):
        row_groups([row("a", "b")], "a", "file-name")


def test_every_third_of_a_group_is_held_out() -> None:
    rows = [row(f"{n} in {v}", f"thing {n}, {v}") for n in range(100) for v in "abcdefg"]
    rows += [row(f"pair {n} in {v}", f"pair {n}, {v}") for n in range(9) for v in "ab"]
    split = [*split_by_group(rows, config("variants", ", .$"), {"valid": 0.05, "test": 0.15})]
    held = {found.fields["target"] for part, found in split if part != "train"}
    begun: dict[str, int] = defaultdict(int)
    for n in range(100):
        variants = "".join(v for v in "abcdefg" if f"thing {n}, {v}" in held)
        assert variants in ("adg", "be", "cf")
        begun[variants] += 1
    assert len(held) == sum(len(variants) * count for variants, count in begun.items())
    assert min(begun.values()) > 20, "no variant is held out of all things, and none of none"
    counts = {part: sum(one == part for one, _ in split) for part in ("valid", "test")}
    assert abs(counts["valid"] / len(held) - 1 / 4) < 0.08
    whole = {part for part, _ in split_by_group(rows, config("variants", ", .$"), {"test": 0.01})}
    assert whole == {"train", "test"}


def test_equal_rows_of_a_group_stay_together() -> None:
    rows = [row(f"{n} in {v}", f"thing {n}, {v}{w}") for n in range(40) for v in "abc" for w in "xy"]
    sides = defaultdict(set)
    for part, found in split_by_group(rows, config("variants", ", ..$"), {"test": 0.2}):
        sides[found.fields["source"]].add(part)
    assert len(sides) == 120
    assert all(len(found) == 1 for found in sides.values())
    assert sum(found == {"test"} for found in sides.values()) == 40


@pytest.mark.parametrize("hold_out", ["groups", "variants"])
def test_nothing_is_cut_where_parts_are_given(hold_out: str) -> None:
    assert {part for part, _ in split_by_group(people(9), config(hold_out, "no such"), {})} == {"train"}


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"data\.group_pattern=xyz matches no text: fix the pattern"):
        row_groups(people(3), "xyz")
    with pytest.raises(UserError, match="compares target texts, and this task has none"):
        row_groups([Row("", {"text": "a", "label": "b"}, "a")], "a")
    with pytest.raises(ValueError, match="no pattern that Python's re can read"):
        config("groups", "(")
    table = tmp_path / "a.tsv"
    table.write_text("source\ttarget\n" + "".join(f"{n}\tn {n}\n" for n in range(40)))
    lone = config("variants", "n ")
    with pytest.raises(UserError, match="no rows for the valid set"):
        prepare_examples.prepare_examples(TEXT_PAIRS, str(table), None, None, lone, print)


@pytest.mark.slow
def test_emoji(outside_data: Path) -> None:
    """By their texts, and by the code points that are their names: without persons, tones of skin, genders
    and directions."""
    data = DataConfig.model_validate({"text": "text_en", "image": {"size": 16}})
    rows = [*IMAGE_TEXT.read(open_part(str(outside_data / "emoji_captions.zip")), data, [])]
    groups = row_groups(rows, r"\W*([\w-]+ skin tone)?(facing right)?")
    of = {found.fields["target"]: group for found, group in zip(rows, groups, strict=True)}
    assert of["handshake: dark skin tone, light skin tone"] == of["handshake"]
    assert of["woman running: medium-light skin tone, facing right"] == of["woman running"]
    assert of["woman running"] != of["woman walking"]
    assert of["flag: Peru"] != of["flag: Chad"]
    assert 1500 < len(set(groups)) < 2000
    named = row_groups(
        rows, r"-?(1f46[89]|1f9d1)(-1f3f[b-f])?-200d|-(1f3f[b-f]|fe0f)|-200d-(264[02]|27a1)", "file-name"
    )
    of = {found.fields["target"]: group for found, group in zip(rows, named, strict=True)}
    assert of["woman running: medium-light skin tone, facing right"] == of["person running"]
    assert of["woman astronaut"] == of["man astronaut: dark skin tone"]
    assert of["woman running"] != of["woman walking"]
    assert of["flag: Peru"] != of["flag: Chad"]
    assert 1650 < len(set(named)) < 1750
