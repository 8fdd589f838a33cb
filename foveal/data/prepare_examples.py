"""Train, validation and test rows of examples, cut without leakage and by content alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.core.log import Say
from foveal.data.core.group_split import split_groups
from foveal.data.core.hash_split import content, overlap, split_rows
from foveal.data.core.prepared_data import NOTHING, Prepared, Taken
from foveal.data.core.rows import Aside, Row
from foveal.data.core.split_data import Part
from foveal.data.datasets.dataset_cache import located
from foveal.data.files.folders import part_folders
from foveal.data.files.tables import SUFFIXES
from foveal.data.images.image_arrays import part_sets
from foveal.data.series.series_files import READERS
from foveal.data.text.unknown_tokens import of_targets, say_left_out

PARTS = ("train", "valid", "test")
SAID = 5
"""So many rows that get no answer are named."""
FORMS = {*SUFFIXES, *READERS}
"""Suffixes of the files that may be a part."""


@runtime_checkable
class Form(Protocol):
    """A form of examples, one file of `foveal.data`. `Any` stands for its own inputs and examples."""

    def read(self, data: str, config: DataConfig, aside: list[Aside]) -> Iterator[Row]:
        """The usable rows at a path, the others put into the list; the field `source` is what is read."""

    def make_inputs(self, data: str, rows: list[Row], config: DataConfig, taken: Taken = NOTHING) -> Any:
        """Tokenizers, labels and the like, from the rows to train on, but for what is taken of a run's.

        `files()` is what is kept of them.
        """

    def encode(self, rows: list[Row], inputs: Any, config: DataConfig, aside: list[Aside]) -> Part[Any]:
        """Rows that don't fit the inputs are put into the list."""

    def open_inputs(self, folder: Path) -> Any:
        """What the inputs' `files()` gave, below a run's folder."""

    def read_questions(self, data: str, config: DataConfig, aside: list[Aside]) -> Iterator[Row]:
        """Sources without answers, the others put into the list."""

    def encode_questions(
        self, rows: list[Row], inputs: Any, config: DataConfig, aside: list[Aside]
    ) -> tuple[list[Row], Any]:
        """Those that the model can read, and their columns. The others are put into the list."""


def prepare(
    form: Form,
    data: str,
    valid: str | None,
    test: str | None,
    config: DataConfig,
    say: Say,
    inputs: Any = None,
    taken: Taken = NOTHING,
) -> Prepared[Any, Any]:
    """Read, split and encode. Nothing is cut from DATA if it has parts, or `valid` or `test` is given.

    `inputs`, or what is `taken` of a run's, are to be used, rather than made from the training part. Rows
    that can't be used are set aside.
    """
    aside: list[Aside] = []
    rows = _read_parts(form, find_parts(data, valid, test, say), config, aside)
    _say_overlap(rows, say)
    _say_alike(rows["train"], say)
    _say_one_target(rows["train"], say)
    inputs = inputs or form.make_inputs(data, rows["train"], config, taken)
    parts = {part: form.encode(found, inputs, config, aside) for part, found in rows.items()}
    for part, encoded in parts.items():
        if rows[part] and not len(encoded):
            raise UserError(nothing_in(part, data, aside))
    train, valid_part, test_part = (encoded if len(encoded) else None for encoded in parts.values())
    sizes = {
        part: encoded.facts | of_targets(inputs, encoded) for part, encoded in parts.items() if len(encoded)
    }
    say_left_out(sizes, say)
    facts = {"source": data, "set_aside": len(aside), "parts": sizes}
    return Prepared(inputs, train, valid_part, test_part, facts, tuple(aside))


def prepare_held_out(
    form: Form, data: str, config: DataConfig, inputs: Any, say: Say
) -> tuple[Any, dict[str, Any]]:
    """All of DATA (of a data set in parts its test part) in a model's own numbers, and its facts."""
    aside: list[Aside] = []
    path = held_out_file(data, "test", say)
    encoded = form.encode(list(form.read(path, config, aside)), inputs, config, aside)
    if not len(encoded):
        why = f"; the first: {aside[0].place}: {aside[0].why}" if aside else ""
        raise UserError(f"{data}: no row that this run can be measured on{why}")
    if aside:
        say(f"{data}: {len(aside):,} rows are set aside, the first: {aside[0].place}: {aside[0].why}")
    left_out = of_targets(inputs, encoded)
    say_left_out({data: left_out}, say)
    return encoded, encoded.facts | left_out | {"set_aside": len(aside)}


class Questions(NamedTuple):
    """The sources that a model can read, what it reads of them, and those that it can't."""

    rows: list[Row]
    examples: Any
    aside: list[Aside]


def read_questions(form: Form, data: str, inputs: Any, config: DataConfig, say: Say) -> Questions:
    """Those of DATA. Errors: UserError if there are none that can be read."""
    aside: list[Aside] = []
    found = [*form.read_questions(data, config, aside)]
    rows, examples = form.encode_questions(found, inputs, config, aside)
    if not rows:
        why = f": {aside[0].place}: {aside[0].why}" if aside else ""
        raise UserError(f"{data}: nothing that can be answered{why}")
    for one in aside[:SAID]:
        say(f"set aside: {one.place}: {one.why}")
    if len(aside) > SAID:
        say(f"{data}: {len(aside):,} rows are set aside and get no answer")
    return Questions(rows, examples, aside)


def nothing_in(part: str, data: str, aside: list[Aside]) -> str:
    why = f" ({len(aside):,} can't be used, the first: {aside[0].place}: {aside[0].why})" if aside else ""
    if part == "train":
        return (
            f"{data}: no rows to train on{why}; give more, or keep less of them back (data.valid, data.test)"
        )
    return f"{data}: no rows for the {part} set{why}; give more, or set data.{part}=0"


def part_files(data: str) -> dict[str, str]:
    """The files by part of a folder with `train.tsv`, say, and `test.tsv`, or the folders of one with `train`
    and `test`, also in a zip, or the arrays of a file; else DATA, to train on.

    Errors: UserError for such files of several forms.
    """
    if parts := part_folders(data) or part_sets(data):
        return parts
    inside = sorted(Path(data).glob("*.*"))
    tables = [path for path in inside if path.stem in PARTS and path.suffix.lower() in FORMS]
    if not any(path.stem == "train" for path in tables):
        return {"train": data}
    if len({path.suffix for path in tables}) > 1:
        names = ", ".join(path.name for path in tables)
        raise UserError(f"{data}: {names} are of several forms; keep those of one")
    return {part: str(path) for part in PARTS for path in tables if path.stem == part}


def find_parts(data: str, valid: str | None, test: str | None, say: Say) -> dict[str, str]:
    """What each part is read from: DATA, or its files by part; `valid` and `test` go first."""
    given = {"valid": valid, "test": test}
    files = {part: held_out_file(path, part, say) for part, path in given.items() if path is not None}
    return part_files(located(data, say)) | files


def held_out_file(data: str, part: str, say: Say) -> str:
    """All of DATA; of a data set in parts that part, or the last it has."""
    files = part_files(located(data, say))
    return files.get(part, list(files.values())[-1])


def _read_parts(
    form: Form, files: dict[str, str], config: DataConfig, aside: list[Aside]
) -> dict[str, list[Row]]:
    """Rows of a single file go to parts by the hashes of their sources: equal ones fall on the same side. Or
    in groups, if the config has some."""
    shares = {} if len(files) > 1 else {"valid": config.valid, "test": config.test}
    shares = {part: share for part, share in shares.items() if share}
    rows: dict[str, list[Row]] = {part: [] for part in PARTS}
    found = form.read(files["train"], config, aside)
    for part, row in split_groups([*found], config, shares) if config.group else split_rows(found, shares):
        rows[part].append(row)
    for part, path in files.items():
        if part != "train":
            rows[part] = list(form.read(path, config, aside))
    for part in shares:
        if not rows[part] and not config.group:  # few rows: one source is better than none
            sources = sorted({content(row) for row in rows["train"]})
            if len(sources) > 1:
                rows[part] = [row for row in rows["train"] if content(row) == sources[0]]
                rows["train"] = [row for row in rows["train"] if content(row) != sources[0]]
    for part in (*files, *shares):
        if not rows[part]:
            if shares and len({content(row) for found in rows.values() for row in found}) == 1:
                raise UserError(
                    f"{files['train']}: every row has the same source, and equal ones stay in one part: "
                    "give other rows, or held-out ones by --valid or --test"
                )
            raise UserError(nothing_in(part, files.get(part, files["train"]), aside))
    return rows


def _say_overlap(rows: dict[str, list[Row]], say: Say) -> None:
    """A held-out row that was trained on flatters the score."""
    for part in ("valid", "test"):
        again = overlap(rows["train"], rows[part])
        if again:
            say(f"{part}: {again:,} of {len(rows[part]):,} sources are in the training part too")


def _say_one_target(rows: list[Row], say: Say) -> None:
    """From one text for all a model learns to write it, whatever it is given."""
    targets = {target for row in rows if isinstance(target := row.fields.get("target"), str)}
    if len(targets) == 1:
        (target,) = targets
        say(f"all of the {len(rows):,} rows to train on have the text '{target}', so nothing else is learnt")


def _say_alike(rows: list[Row], say: Say) -> None:
    """Labels that differ in case alone are classes of their own, and seldom meant to be."""
    found: dict[str, set[str]] = {}
    for label in {label for row in rows if isinstance(label := row.fields.get("label"), str)}:
        found.setdefault(label.casefold(), set()).add(label)
    for names in sorted(sorted(names) for names in found.values() if len(names) > 1):
        told = " and ".join(f"'{name}'" for name in names)
        say(f"the labels {told} differ in case alone, and are learnt as {len(names)} classes")
