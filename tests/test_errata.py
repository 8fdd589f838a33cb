"""docs/errata.md: each mistake has its place in the code and its guard, and is made on no other page."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.docs_pages import DOCS

ROOT = DOCS.parent
PAGE = DOCS / "errata.md"
LABELS = ["The slide says", "Right is", "Code", "Guard"]
NUMBERS = [f"E{number}" for number in range(1, 37)]
LAST_SECTION = "\n## Checked and right"
REPEATED = {
    "E26": r"GPT-?4\b.{0,60}\d ?(B|billion)\b",
    "E27": r"\b(570|694|126) ?GB\b|512 ?x TPU|\b280 ?x ?A100",
    "E28": r"Devlin et al\.? 2018|EMNLP 2018|Swin .{0,60}CVPR|Matching, CVPR 2018",
    "E29": r"[Ss]how, attend,? and tell.{0,60}question",
    "E30": r"\b(11\.7|7\.3|3\.57) ?% top.5",
}
"""What no test of code can see."""


class Entry(NamedTuple):
    """A mistake on the page, and its parts by their labels."""

    number: str
    parts: dict[str, str]

    def links(self, label: str) -> list[tuple[str, str]]:
        """Return the named symbols of a part, each with the path that its link leads to."""
        return re.findall(r"\[`([^`]+)`\]\(\.\./([^)#]+)\)", self.parts[label])


def entries(page: str) -> list[Entry]:
    _, *sections = re.split(r"^### ", page.partition(LAST_SECTION)[0], flags=re.MULTILINE)
    return [Entry(section.partition(".")[0], parts(section.partition("\n## ")[0])) for section in sections]


def parts(section: str) -> dict[str, str]:
    _, *items = re.split(r"^\* ", section, flags=re.MULTILINE)
    found = (re.fullmatch(r"\*\*([\w ]+)\*\*\s(.+)", item.strip(), re.DOTALL) for item in items)
    return {item[1]: " ".join(item[2].split()) for item in found if item}


def faults(page: str) -> Iterator[str]:
    """Yield what is missing on the page, or what the page names and the repository lacks."""
    every = entries(page)
    right = Entry("right", {"Guard": page.partition(LAST_SECTION)[2]})
    yield from (f"right: {fault}" for fault in missing_guards(right))
    if sorted(entry.number for entry in every) != sorted(NUMBERS):
        yield f"not E1 to E36, each once: {[entry.number for entry in every]}"
    for entry in every:
        if [*entry.parts] != LABELS:
            yield f"{entry.number}: {[*entry.parts]}"
        else:
            yield from (f"{entry.number}: {fault}" for fault in missing_links(entry))


def missing_links(entry: Entry) -> Iterator[str]:
    code = entry.links("Code")
    yield from (f"{path}: no {name}" for name, path in code if name not in symbols(path))
    if not code:
        yield "names no code"
    yield from missing_guards(entry)


def missing_guards(entry: Entry) -> Iterator[str]:
    guards = entry.links("Guard")
    yield from (f"{path}: no {name}" for name, path in guards if name not in guards_in(path))
    if not any(guards_in(path).get(name) for name, path in guards):
        yield "names no test that runs each time"


@cache
def symbols(path: str) -> set[str]:
    """Return the names that a file defines; of a class its methods too, and of TOML its keys and its name."""
    if not (ROOT / path).is_file():
        return set()
    text = (ROOT / path).read_text("utf-8")
    if path.endswith(".toml"):
        return {Path(path).stem, *tomllib.loads(text)}
    return {*defined(ast.parse(text))}


def defined(tree: ast.Module | ast.ClassDef, prefix: str = "") -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield prefix + node.name
        if isinstance(node, ast.ClassDef):
            yield from defined(node, f"{prefix}{node.name}.")
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        yield from (prefix + target.id for target in targets if isinstance(target, ast.Name))


@cache
def guards_in(path: str) -> dict[str, bool]:
    """Return the tests of a file, and whether each runs each time: slow tests do not."""
    if not (ROOT / path).is_file() or not Path(path).name.startswith("test_"):
        return {}
    nodes = [node for node in ast.parse((ROOT / path).read_text("utf-8")).body if is_test(node)]
    return {node.name: not skipped(node) for node in nodes if isinstance(node, ast.FunctionDef)}


def is_test(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name.startswith("test_")


def skipped(test: ast.FunctionDef) -> bool:
    return any(re.search(r"mark\.(slow|skip|xfail)", ast.unparse(mark)) for mark in test.decorator_list)


def test_each_mistake_has_its_place_and_its_guard() -> None:
    assert [*faults(PAGE.read_text("utf-8"))] == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("### E7. ", "### E37. ", "not E1 to E36"),
        ("### E7. ", "### E8. ", "not E1 to E36"),
        ("* **Right is** `dim=-1`", "* Right is `dim=-1`", "E3: ["),
        ("[`rms_norm`](../foveal/ops/normal", "[`rms_norms`](../foveal/ops/normal", "E10: foveal/ops/normal"),
        ("[`Dropout`](../foveal/layers/drop", "[`Dropout`](../foveal/layers/prod", "E22: foveal/layers/prod"),
        ("[`Optimizer.step`](", "[`Optimizer.stop`](", "E15: foveal/training/optim.py: no Optimizer.stop"),
        ("[`min-char-rnn`](", "[`max-char-rnn`](", "E20: foveal/presets/min-char-rnn.toml: no max-char-rnn"),
        (
            "[`test_sinusoids`](",
            "[`test_cosinusoids`](",
            "E9: tests/layers/test_parity.py: no test_cosinusoids",
        ),
        ("[`test_swiglu_is_silu`](", "[`grown`](", "E11: tests/layers/test_parity.py: no grown"),
        ("[`vgg`](../", "vgg (", "E23: names no code"),
        (
            "[`test_the_numbers_of_the_lecture`](",
            "[`test_the_numbers`](",
            "right: tests/layers/vision/test_hand",
        ),
        (
            "[`test_norm_and_largest_are_those_before_clipping`](../tests/training/test_optim.py)",
            "[`test_min_char_rnn`](../tests/test_lectures.py)",
            "E15: names no test that runs each time",
        ),
    ],
)
def test_a_fault_of_the_page_is_seen(old: str, new: str, fault: str) -> None:
    page = PAGE.read_text("utf-8")
    assert page.count(old) >= 1
    found = [*faults(page.replace(old, new, 1))]
    assert any(each.startswith(fault) for each in found), found


@pytest.mark.parametrize("number", REPEATED)
def test_no_other_page_says_it(number: str) -> None:
    """The pattern fits the page's own quotation, and nothing else."""
    (entry,) = [entry for entry in entries(PAGE.read_text("utf-8")) if entry.number == number]
    assert re.search(REPEATED[number], entry.parts["The slide says"])
    files = [
        *ROOT.glob("*.md"),
        *DOCS.rglob("*.md"),
        *ROOT.glob("foveal/**/*.py"),
        *ROOT.glob("foveal/**/*.toml"),
        *ROOT.glob("benchmarks/*.md"),
    ]
    said = [path for path in files if re.search(REPEATED[number], " ".join(path.read_text("utf-8").split()))]
    assert said == [PAGE]
