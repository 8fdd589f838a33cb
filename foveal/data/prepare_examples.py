"""Examples of DATA: rows are read, split by content alone without leakage, and encoded."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.terminal_text import counted
from foveal.data.core.classes import to_number
from foveal.data.core.compare_rows import count_overlap, find_contradictions
from foveal.data.core.hash_split import SPLITS, SplitName
from foveal.data.core.prepared_data import NO_REUSE, PreparedData, ReusedProcessors
from foveal.data.core.row_table import RowTable
from foveal.data.core.rows import Row, SkippedPart, SkippedRow, source_text
from foveal.data.core.split_data import ContentHash, SplitData
from foveal.data.example_store import find_store
from foveal.data.files.data_part import DataPart
from foveal.data.files.split_names import is_unlabeled_name
from foveal.data.open import OpenedData, open_data, open_path
from foveal.data.pairs.pair import PairFormat, PairProcessor
from foveal.data.read_splits import first_skip, open_splits, read_splits
from foveal.data.text.unknown_tokens import (
    check_known_facts,
    check_known_sources,
    log_unknown_tokens,
    unknown_target_facts,
)
from foveal.data.workspace import InMemory, Workspace
from foveal.store.cache import shorten_unpacked_paths

MAX_LOGGED_SKIPS = 5
"""Skipped rows that are logged one by one."""


def prepare_examples(
    data_format: PairFormat,
    data: str | OpenedData,
    valid: str | None,
    test: str | None,
    config: DataConfig,
    log: Log,
    processor: PairProcessor | None = None,
    reused: ReusedProcessors = NO_REUSE,
) -> PreparedData[PairProcessor, Any]:
    """Read, split and encode DATA. If DATA has splits, or if `valid` or `test` is given, no other rows are
    held out.

    `processor`, or the processors in `reused`, are used instead of new ones fitted to the training split.
    Rows that can't be used are skipped.

    Raises: UserError: DATA can't be read, or a split has no rows that can be used.
    """
    opened = open_data(data, log, config.encoding)
    files = open_splits(opened, valid, test, data_format, config, log)

    def prepare(workspace: Workspace, log: Log) -> PreparedData[PairProcessor, Any]:
        return _prepare(data_format, opened.name, files, config, workspace, log, processor, reused)

    store = find_store(data_format, files, config, processor, reused)
    prepared = prepare(InMemory(), log) if store is None else store.load_or_build(prepare, log)
    return replace(prepared, facts={"source": opened.name} | prepared.facts)


def _prepare(
    data_format: PairFormat,
    data: str,
    files: dict[SplitName, DataPart],
    config: DataConfig,
    workspace: Workspace,
    log: Log,
    processor: PairProcessor | None,
    reused: ReusedProcessors,
) -> PreparedData[PairProcessor, Any]:
    """Read, split and encode the files of the splits of `data` in a workspace."""
    rows, skipped = workspace.read(
        lambda skipped, new_sink: read_splits(data_format, files, config, skipped, new_sink)
    )
    _log_overlap(rows, log)
    _log_contradictions([rows[split] for split in SPLITS], log)
    _log_similar_labels(rows["train"], log)
    _log_single_target(rows["train"], log)
    _check_labels_left(data, rows, splits_off=[*files] == ["train"])
    fitted = processor or data_format.make_processor(data, rows["train"], config, reused)

    def encode(chunk: Sequence[Row], skipped: list[SkippedRow], content: ContentHash) -> SplitData[Any]:
        return data_format.encode(chunk, fitted, config, skipped, content)

    splits: dict[str, Any] = {}
    for split in SPLITS:
        unusable: list[SkippedRow] = []
        splits[split] = workspace.encode(split, rows[split], encode, unusable)
        if rows[split] and not len(splits[split]):
            raise UserError(_unusable_split_error(split, str(files.get(split, data)), unusable))
        skipped += unusable
    _log_lost_classes(files["train"], rows, skipped, log)
    train, valid_split, test_split = (encoded if len(encoded) else None for encoded in splits.values())
    split_facts = {
        split: encoded.facts | unknown_target_facts(fitted, encoded)
        for split, encoded in splits.items()
        if len(encoded)
    }
    for split in (files.keys() & split_facts.keys()) - {"train"}:
        check_known_sources(str(files[split]), fitted.source, splits[split].sources)
        check_known_facts(str(files[split]), split_facts[split])
    log_unknown_tokens(split_facts, log)
    facts = {"skipped": len(skipped), "parts": split_facts}
    return PreparedData(fitted, train, valid_split, test_split, facts, tuple(skipped))


def prepare_eval_examples(
    data_format: PairFormat, data: str | OpenedData, config: DataConfig, processor: PairProcessor, log: Log
) -> tuple[Any, dict[str, Any]]:
    """Read and encode all of DATA, or its test split if DATA has splits. Return the examples and their facts.

    Raises: UserError: no row can be used.
    """
    skipped: list[SkippedRow] = []
    opened = open_data(data, log, config.encoding)
    data = opened.name
    rows = list(data_format.read(opened.split("test"), config, skipped))
    encoded = data_format.encode(rows, processor, config, skipped)
    if not len(encoded):
        first = f"; the first: {skipped[0].location}: {skipped[0].reason}" if skipped else ""
        raise UserError(f"{data}: no row on which this run can be evaluated{first}")
    if skipped:
        first_skip = f"{skipped[0].location}: {skipped[0].reason}"
        log(f"{data}: skipped {counted(len(skipped), 'row')}, the first: {first_skip}")
    check_known_sources(data, processor.source, encoded.sources)
    unknown_facts = unknown_target_facts(processor, encoded)
    check_known_facts(data, encoded.facts | unknown_facts)
    log_unknown_tokens({data: unknown_facts}, log)
    return encoded, encoded.facts | unknown_facts | {"skipped": len(skipped)}


class UnlabeledData(NamedTuple):
    """The rows that a model can read, their examples, and the rows that it can't read."""

    rows: list[Row]
    examples: Any
    skipped: list[SkippedRow]


def read_unlabeled(
    data_format: PairFormat, data: str | OpenedData, processor: PairProcessor, config: DataConfig, log: Log
) -> UnlabeledData:
    """Read and encode the sources of DATA, without targets.

    Raises: UserError: no source can be read.
    """
    skipped: list[SkippedRow] = []
    opened = open_path(data, config.encoding)
    all_rows = [*data_format.read_unlabeled(opened.sources(data_format.source.table), config, skipped)]
    rows, examples = data_format.encode_unlabeled(all_rows, processor, config, skipped)
    if not rows:
        reason = f": {skipped[0].location}: {skipped[0].reason}" if skipped else ""
        raise UserError(f"{data}: no readable source{reason}")
    check_known_sources(opened.name, processor.source, map(source_text, rows))
    for row in skipped[:MAX_LOGGED_SKIPS]:
        log(shorten_unpacked_paths(f"skipped: {row.location}: {row.reason}"))
    if len(skipped) > MAX_LOGGED_SKIPS:
        log(f"{data}: {len(skipped):,} rows are skipped and get no prediction")
    return UnlabeledData(rows, examples, skipped)


def read_labeled_rows(data_format: PairFormat, data: str | OpenedData, config: DataConfig) -> list[Row]:
    """Read the rows of DATA that have a target; none if no row has one.

    Skipped rows are not logged: `read_unlabeled` logs the sources that can't be read.
    """
    opened = open_path(data, config.encoding)
    with suppress(UserError):
        return [*data_format.read(opened.sources(data_format.source.table), config, [])]
    return []


def _unusable_split_error(split: str, data: str, skipped: list[SkippedRow]) -> str:
    """Return the message for a split whose rows can't be used. Fractions that are held out don't change
    that."""
    purpose = "to train on" if split == "train" else f"for the {split} set"
    return f"{data}: no rows {purpose}{first_skip(skipped)}; give rows that this model can use"


def _check_labels_left(data: str, rows: dict[SplitName, RowTable], splits_off: bool) -> None:
    """Check that there are two labels to train on, if there are two in all splits.

    `splits_off` says whether the held-out rows were split off from `data`, or come from files of their own.

    Raises: UserError: there is one.
    """
    labels = {split: set(rows[split].labels) for split in SPLITS}
    if len(labels["train"]) == 1 < len(set().union(*labels.values())):
        (label,) = labels["train"]
        held_out = len(rows["valid"]) + len(rows["test"])
        reason = f"since {held_out:,} are held out" if splits_off else "while held-out rows have others"
        raise UserError(
            f"{data}: only the label '{label}' is in the training rows ({len(rows['train']):,}), {reason}; "
            "give more rows of each label to train on"
        )


def _log_overlap(rows: dict[SplitName, RowTable], log: Log) -> None:
    """Log how many held-out sources also occur in the training split, which makes the score too high."""
    for split in ("valid", "test"):
        overlap = count_overlap(rows["train"], rows[split])
        if overlap:
            log(f"{split}: {overlap:,} of {len(rows[split]):,} sources are also in the training split")


def _log_single_target(rows: RowTable, log: Log) -> None:
    """Log if all rows have the same target text, because a model would learn to generate this text for any
    source."""
    target = rows[0].fields.get("target")
    if isinstance(target, str) and all(row.fields["target"] == target for row in rows):
        log(f"all {len(rows):,} training rows have the text '{target}', so the model can learn nothing else")


def _log_contradictions(tables: Sequence[RowTable], log: Log) -> None:
    """Log how many equal sources have several labels, and the rows of the first of them."""
    contradictions = find_contradictions(tables)
    if contradictions.first is not None:
        places = " and ".join(f"{row.location} ('{row.fields['label']}')" for row in contradictions.first)
        rows = counted(contradictions.rows, "row")
        log(f"{rows} with the source of another row, but another label: {places}")


def _log_lost_classes(
    train: DataPart, rows: dict[SplitName, RowTable], skipped: list[SkippedRow], log: Log
) -> None:
    """Log the folders of labels of which every file is skipped."""
    lost = {row.location for row in skipped if not isinstance(row, SkippedPart)}
    labels = {label for label in rows["train"].labels if isinstance(label, str)}
    if not labels or train.table is not None or not train.is_folder or not labels <= {*train.filled_folders}:
        return
    used = {row.fields["label"] for split in SPLITS for row in rows[split] if row.location not in lost}
    for folder in train.filled_folders:
        if folder not in used and not is_unlabeled_name(folder):
            log(f"{train}: the class {folder} has no readable file")


def _log_similar_labels(rows: RowTable, log: Log) -> None:
    """Log labels that differ only in case or in how a number is written: they are separate classes, which is
    rarely intended."""
    spellings: dict[str | float, set[str]] = {}
    for label in (label for label in rows.labels if isinstance(label, str)):
        number = to_number(label)
        spellings.setdefault(label.casefold() if number is None else number, set()).add(label)
    for names in sorted(sorted(names) for names in spellings.values() if len(names) > 1):
        quoted = " and ".join(f"'{name}'" for name in names)
        kind = "case" if to_number(names[0]) is None else "how the number is written"
        log(f"the labels {quoted} differ only in {kind}, and count as {len(names)} classes")
