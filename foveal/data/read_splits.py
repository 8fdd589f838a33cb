"""The splits of DATA as rows: those of DATA or of `--valid` and `--test`, or held out by content."""

from collections.abc import Callable

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.data.core.group_split import split_by_group
from foveal.data.core.hash_split import SPLITS, SplitName, split_rows
from foveal.data.core.row_table import ListedRows, RowSink, RowTable, fill
from foveal.data.core.rows import SkippedRow
from foveal.data.files.aligned import check_same_order
from foveal.data.files.data_part import DAMAGED_ZIP_ERRORS, DataPart
from foveal.data.files.split_column import check_split_columns
from foveal.data.files.tables import list_columns, read_records
from foveal.data.open import OpenedData, open_data
from foveal.data.pairs.pair import PairFormat


def open_splits(
    data: OpenedData,
    valid: str | None,
    test: str | None,
    data_format: PairFormat,
    config: DataConfig,
    log: Log,
) -> dict[SplitName, DataPart]:
    """Return the file or folder of each split: the splits of DATA, replaced by `valid` and `test`.

    A held-out part of DATA without targets, or with a column of targets that is empty, is left out.

    Raises: UserError: a part that the user names has no targets, a column of DATA names the splits, or two
    files are in another order than DATA.
    """
    paths = {"valid": valid, "test": test}
    replaced = {
        split: open_data(path, log, config.encoding).split(split)
        for split, path in paths.items()
        if path is not None
    }
    for part in replaced.values():
        check_same_order(data.named.aligned, part.aligned)
    column = data_format.target.column(config)
    if not replaced and len(data.splits) == 1:
        used = (config.text, config.source, config.target, config.label)
        check_split_columns(data.train, used, log)
    parts = {split: part for split, part in data.splits.items() if split == "train" or split not in replaced}
    for split, part in [*parts.items(), *replaced.items()]:
        lacks = _missing_target(part, data.train, column) if data_format.target.field else ""
        if lacks and split in replaced:
            raise UserError(
                f"{part}: {lacks}, so it is no {split} set; give rows with it, or leave out --{split} "
                "(foveal predict answers rows without)"
            )
        if lacks:
            log(f"{part}: {lacks}, so it is not used as {split} set; foveal predict reads it")
            del parts[split]
    return parts | replaced


def _missing_target(part: DataPart, train: DataPart, column: str) -> str:
    """Say what a held-out part lacks that the training part has. Empty if it lacks nothing."""
    if part is train:
        return ""
    if part.table is not None:
        if column in part.columns:
            return "" if _has_values(part, column) else f"the column '{column}' is empty"
        if not part.columns or (train.table and column not in train.columns):
            return ""
        return f"no column '{column}' among {list_columns(part.columns)}"
    has_labels = part.listing.folders or part.sidecars if part.is_folder else True
    return "" if has_labels else "neither folders of labels nor a metadata table in it"


def _has_values(part: DataPart, column: str) -> bool:
    """Return whether a row of a part has a value in a column. A table that can't be read counts as if so: the
    reader of the data reports the error."""
    try:
        for table in part.files if part.is_table else [part.table]:
            records = read_records(table, [column], encoding=part.encoding) if table is not None else ()
            values = (fields[column] for _, fields in records if isinstance(fields, dict))
            if any(value is not None and value == value and str(value).strip() for value in values):
                return True
    except (UserError, *DAMAGED_ZIP_ERRORS):
        return True
    return False


def read_splits(
    data_format: PairFormat,
    files: dict[SplitName, DataPart],
    config: DataConfig,
    skipped: list[SkippedRow],
    new_sink: Callable[[], RowSink] = ListedRows,
) -> dict[SplitName, RowTable]:
    """Read the rows of each split into a sink.

    A single file is split by the hashes of the rows' keys, so that equal rows are in the same split. If the
    config has a group pattern, the file is split by group.

    Raises: UserError: a split has no rows.
    """
    fractions = {} if len(files) > 1 else {"valid": config.valid_fraction, "test": config.test_fraction}
    fractions = {split: fraction for split, fraction in fractions.items() if fraction}
    sinks = {split: new_sink() for split in SPLITS}
    to_split = data_format.read(files["train"], config, skipped)
    for split, row in (
        split_by_group([*to_split], config, fractions)
        if config.group_pattern
        else split_rows(to_split, fractions)
    ):
        sinks[split].append(row)
    for split, part in files.items():
        if split != "train":
            for row in data_format.read(part, config, skipped):
                sinks[split].append(row)
    rows = {split: sink.table() for split, sink in sinks.items()}
    for split in fractions:
        if not rows[split] and not config.group_pattern:  # few rows: one source is better than none
            sources = sorted({row.key for row in rows["train"]})
            if len(sources) > 1:
                train = rows["train"]
                rows[split] = fill(new_sink(), (row for row in train if row.key == sources[0]))
                rows["train"] = fill(new_sink(), (row for row in train if row.key != sources[0]))
    for split in (*files, *fractions):
        if not rows[split]:
            all_rows = [row for split in rows for row in rows[split]]
            if not all_rows:
                raise UserError(
                    f"{files['train']}: no rows to train on{first_skip(skipped)}; give rows that can be used"
                )
            if fractions and len(all_rows) == 1:
                raise UserError(
                    f"{files['train']}: a single row that can be used; give more{first_skip(skipped)}"
                )
            if fractions and len({row.key for row in all_rows}) == 1:
                raise UserError(
                    f"{files['train']}: every row has the same source, and equal rows stay in one split: "
                    "give other rows, or train with held-out rows of their own (--valid, --test)"
                )
            empty = str(files.get(split, files["train"]))
            raise UserError(_empty_split_error(split, empty, skipped, bool(fractions)))
    return rows


def _empty_split_error(split: str, data: str, skipped: list[SkippedRow], held_out: bool) -> str:
    """Return the message for a split without rows. `held_out` says whether fractions of DATA are held out."""
    if split == "train":
        less = ", or hold fewer of them out (data.valid_fraction, data.test_fraction)" if held_out else ""
        return f"{data}: no rows to train on{first_skip(skipped)}; give more rows{less}"
    less = f", or set data.{split}_fraction=0" if held_out else ""
    return f"{data}: no rows for the {split} set{first_skip(skipped)}; give more rows{less}"


def first_skip(skipped: list[SkippedRow]) -> str:
    if not skipped:
        return ""
    return f" ({len(skipped):,} can't be used, the first: {skipped[0].location}: {skipped[0].reason})"
