"""Train, validation and test rows of examples, cut without leakage and by content alone."""

from contextlib import suppress
from typing import Any, NamedTuple

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.data.core.group_split import split_by_group
from foveal.data.core.hash_split import SPLITS, SplitName, count_overlap, split_rows
from foveal.data.core.prepared_data import NO_REUSE, PreparedData, ReusedProcessors
from foveal.data.core.rows import Row, SkippedRow
from foveal.data.files.data_part import DataPart
from foveal.data.open import OpenedData, open_data, open_path
from foveal.data.pairs.pair import PairFormat, PairProcessor
from foveal.data.text.unknown_tokens import log_unknown_tokens, unknown_target_facts

MAX_LOGGED_SKIPS = 5
"""So many rows that get no answer are named."""


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
    """Read, split and encode. Nothing is cut from DATA if it has parts, or `valid` or `test` is given.

    `processor`, or what is `reused` of a run's, are to be used, rather than made from the training part. Rows
    that can't be used are skipped.
    """
    skipped: list[SkippedRow] = []
    opened = open_data(data, log)
    data = opened.name
    rows = _read_splits(data_format, _open_splits(opened, valid, test, log), config, skipped)
    _log_overlap(rows, log)
    _log_similar_labels(rows["train"], log)
    _log_single_target(rows["train"], log)
    processor = processor or data_format.make_processor(data, rows["train"], config, reused)
    parts = {part: data_format.encode(found, processor, config, skipped) for part, found in rows.items()}
    for part, encoded in parts.items():
        if rows[part] and not len(encoded):
            raise UserError(empty_split_error(part, data, skipped))
    train, valid_part, test_part = (encoded if len(encoded) else None for encoded in parts.values())
    sizes = {
        part: encoded.facts | unknown_target_facts(processor, encoded)
        for part, encoded in parts.items()
        if len(encoded)
    }
    log_unknown_tokens(sizes, log)
    facts = {"source": data, "skipped": len(skipped), "parts": sizes}
    return PreparedData(processor, train, valid_part, test_part, facts, tuple(skipped))


def prepare_eval_examples(
    data_format: PairFormat, data: str | OpenedData, config: DataConfig, processor: PairProcessor, log: Log
) -> tuple[Any, dict[str, Any]]:
    """All of DATA (of a data set in parts its test part) in a model's own numbers, and its facts."""
    skipped: list[SkippedRow] = []
    opened = open_data(data, log)
    data = opened.name
    rows = list(data_format.read(opened.split("test"), config, skipped))
    encoded = data_format.encode(rows, processor, config, skipped)
    if not len(encoded):
        why = f"; the first: {skipped[0].location}: {skipped[0].reason}" if skipped else ""
        raise UserError(f"{data}: no row that this run can be measured on{why}")
    if skipped:
        log(
            f"{data}: {len(skipped):,} rows are skipped, the first: {skipped[0].location}: {skipped[0].reason}"
        )
    left_out = unknown_target_facts(processor, encoded)
    log_unknown_tokens({data: left_out}, log)
    return encoded, encoded.facts | left_out | {"skipped": len(skipped)}


class UnlabeledData(NamedTuple):
    """The sources that a model can read, what it reads of them, and those that it can't."""

    rows: list[Row]
    examples: Any
    skipped: list[SkippedRow]


def read_unlabeled(
    data_format: PairFormat, data: str | OpenedData, processor: PairProcessor, config: DataConfig, log: Log
) -> UnlabeledData:
    """Read the sources of DATA.

    Raises: UserError: there are none that can be read.
    """
    skipped: list[SkippedRow] = []
    opened = data if isinstance(data, OpenedData) else open_path(data)
    found = [*data_format.read_unlabeled(opened.whole, config, skipped)]
    rows, examples = data_format.encode_unlabeled(found, processor, config, skipped)
    if not rows:
        why = f": {skipped[0].location}: {skipped[0].reason}" if skipped else ""
        raise UserError(f"{data}: nothing that can be answered{why}")
    for one in skipped[:MAX_LOGGED_SKIPS]:
        log(f"skipped: {one.location}: {one.reason}")
    if len(skipped) > MAX_LOGGED_SKIPS:
        log(f"{data}: {len(skipped):,} rows are skipped and get no answer")
    return UnlabeledData(rows, examples, skipped)


def read_labeled_rows(data_format: PairFormat, data: str | OpenedData, config: DataConfig) -> list[Row]:
    """Read those rows of DATA that have a target. Where sources are read, one hears what others lack."""
    opened = data if isinstance(data, OpenedData) else open_path(data)
    with suppress(UserError):
        return [*data_format.read(opened.whole, config, [])]
    return []


def empty_split_error(split: str, data: str, skipped: list[SkippedRow]) -> str:
    why = (
        f" ({len(skipped):,} can't be used, the first: {skipped[0].location}: {skipped[0].reason})"
        if skipped
        else ""
    )
    if split == "train":
        return (
            f"{data}: no rows to train on{why}; give more, or keep less of them back "
            "(data.valid_fraction, data.test_fraction)"
        )
    return f"{data}: no rows for the {split} set{why}; give more, or set data.{split}_fraction=0"


def _open_splits(
    data: OpenedData, valid: str | None, test: str | None, log: Log
) -> dict[SplitName, DataPart]:
    """Return what each split is read from: DATA, or its splits; `valid` and `test` go first."""
    given = {"valid": valid, "test": test}
    own = {split: open_data(path, log).split(split) for split, path in given.items() if path is not None}
    return data.splits | own


def _read_splits(
    data_format: PairFormat, files: dict[SplitName, DataPart], config: DataConfig, skipped: list[SkippedRow]
) -> dict[str, list[Row]]:
    """Rows of a single file go to parts by the hashes of their sources: equal ones fall on the same side. Or
    in groups, if the config has some."""
    shares = {} if len(files) > 1 else {"valid": config.valid_fraction, "test": config.test_fraction}
    shares = {part: share for part, share in shares.items() if share}
    rows: dict[str, list[Row]] = {part: [] for part in SPLITS}
    found = data_format.read(files["train"], config, skipped)
    for part, row in (
        split_by_group([*found], config, shares) if config.group_pattern else split_rows(found, shares)
    ):
        rows[part].append(row)
    for part, path in files.items():
        if part != "train":
            rows[part] = list(data_format.read(path, config, skipped))
    for part in shares:
        if not rows[part] and not config.group_pattern:  # few rows: one source is better than none
            sources = sorted({row.key for row in rows["train"]})
            if len(sources) > 1:
                rows[part] = [row for row in rows["train"] if row.key == sources[0]]
                rows["train"] = [row for row in rows["train"] if row.key != sources[0]]
    for part in (*files, *shares):
        if not rows[part]:
            if shares and len({row.key for found in rows.values() for row in found}) == 1:
                raise UserError(
                    f"{files['train']}: every row has the same source, and equal ones stay in one part: "
                    "give other rows, or held-out ones by --valid or --test"
                )
            raise UserError(empty_split_error(part, str(files.get(part, files["train"])), skipped))
    return rows


def _log_overlap(rows: dict[str, list[Row]], log: Log) -> None:
    """A held-out row that was trained on flatters the score."""
    for part in ("valid", "test"):
        again = count_overlap(rows["train"], rows[part])
        if again:
            log(f"{part}: {again:,} of {len(rows[part]):,} sources are in the training part too")


def _log_single_target(rows: list[Row], log: Log) -> None:
    """From one text for all a model learns to write it, whatever it is given."""
    targets = {target for row in rows if isinstance(target := row.fields.get("target"), str)}
    if len(targets) == 1:
        (target,) = targets
        log(f"all of the {len(rows):,} rows to train on have the text '{target}', so nothing else is learnt")


def _log_similar_labels(rows: list[Row], log: Log) -> None:
    """Labels that differ in case alone are classes of their own, and seldom meant to be."""
    found: dict[str, set[str]] = {}
    for label in {label for row in rows if isinstance(label := row.fields.get("label"), str)}:
        found.setdefault(label.casefold(), set()).add(label)
    for names in sorted(sorted(names) for names in found.values() if len(names) > 1):
        told = " and ".join(f"'{name}'" for name in names)
        log(f"the labels {told} differ in case alone, and are learnt as {len(names)} classes")
