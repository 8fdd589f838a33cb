"""Splits by group: whole groups of variants are held out, or some variants of each group."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Literal

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.core.runtime import derived_seed
from foveal.data.core.hash_split import Fractions, SplitName, check_fractions, split_of_text
from foveal.data.core.rows import Row

HOLD_OUT_EVERY = 3
"""One of this many variants of a group is held out."""


def split_by_group(
    rows: Sequence[Row], config: DataConfig, fractions: Fractions
) -> Iterator[tuple[SplitName, Row]]:
    """Yield each row with its split. `data.hold_out` decides what is held out.

    * groups: the hash of a group's content decides the split of the group, by `fractions`.
    * variants: every third distinct row of a group, in order, is held out. The hash of the row
      decides between the held-out splits, in the proportion of their fractions. The hash of the group decides
      which variant is held out first: otherwise, if all groups have the same variants, some variants would
      never be trained on. Groups of one or two rows are only trained on.

    Without fractions all rows are trained on.

    Raises: UserError: the fractions leave no rows to train on, or `row_groups` finds no groups.
    """
    check_fractions(fractions)
    if not fractions:
        yield from (("train", row) for row in rows)
        return
    groups = row_groups(rows, config.group_pattern, config.group_by)
    if config.hold_out == "groups":
        yield from ((split_of_text(group, fractions), row) for group, row in zip(groups, rows, strict=True))
        return
    members: dict[str, dict[str, int]] = defaultdict(dict)
    for group, row in zip(groups, rows, strict=True):
        members[group].setdefault(row.key, len(members[group]))
    for group, row in zip(groups, rows, strict=True):
        index, count = members[group][row.key], len(members[group])
        is_trained_on = count < HOLD_OUT_EVERY or (index + derived_seed(group)) % HOLD_OUT_EVERY
        yield ("train" if is_trained_on else _held_out_split(row, fractions)), row


def _held_out_split(row: Row, fractions: Fractions) -> SplitName:
    """Return the split of a row that is held out."""
    *others, last = fractions
    total = sum(fractions.values())
    split = split_of_text(row.key, {other: fractions[other] / total for other in others})
    return last if split == "train" else split


def row_groups(
    rows: Sequence[Row], pattern: str, group_by: Literal["text", "file-name"] = "text"
) -> list[str]:
    """Return the name of each row's group: the smallest key of its rows.

    Two rows are in the same group if their keys are equal, or if their texts or file names are equal after
    the matches of `pattern` are removed. The groups are the transitive closure of this relation.

    Raises: UserError: the rows have no such texts or names, or `pattern` matches none of them.
    """
    texts = [row.fields.get("target" if group_by == "text" else "name") for row in rows]
    if not all(isinstance(text, str) for text in texts):
        compared = "target texts" if group_by == "text" else "names of files (data.group_by=file-name)"
        raise UserError(f"data.group_pattern compares {compared}, and this task has none: leave it out")
    if group_by == "file-name":
        texts = [PurePath(str(text)).name for text in texts]
    stems = [re.sub(pattern, "", str(text)) for text in texts]
    if stems == texts:
        raise UserError(
            f"data.group_pattern={pattern} matches no {group_by}: fix the pattern, or leave it out"
        )
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for row, stem in zip(rows, stems, strict=True):
        first, second = sorted((root(f"content {row.key}"), root(f"text {stem}")))
        parent[second] = first  # keys sort before texts, so the smallest key names the group
    return [root(f"text {stem}") for stem in stems]
