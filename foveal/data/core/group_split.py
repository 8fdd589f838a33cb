"""Parts of rows about things in several variants: held out are whole things, or some variants of each."""

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
"""Of so many variants of a thing one is held out."""


def split_by_group(
    rows: Sequence[Row], config: DataConfig, fractions: Fractions
) -> Iterator[tuple[SplitName, Row]]:
    """Each row with its part; `data.hold_out` says of what the held-out parts are made.

    * groups: a group goes to a part by the hash of its content, as `fractions` say.
    * variants: every third of a group's different rows, in their order, is held out, for the one part or the
      other by its hash, in the proportion of their shares. With which it begins is the group's hash: else
      where all things have the same variants, some of these would not be seen of any. A group of one or two
      rows is only trained on.

    Without shares all are trained on. Errors: UserError for shares that leave nothing to train on, and as
    `row_groups`.
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
        place, count = members[group][row.key], len(members[group])
        kept = count < HOLD_OUT_EVERY or (place + derived_seed(group)) % HOLD_OUT_EVERY
        yield ("train" if kept else _held_out_split(row, fractions)), row


def _held_out_split(row: Row, fractions: Fractions) -> SplitName:
    """The part of a row that is not trained on."""
    *others, last = fractions
    whole = sum(fractions.values())
    part = split_of_text(row.key, {other: fractions[other] / whole for other in others})
    return last if part == "train" else part


def row_groups(
    rows: Sequence[Row], pattern: str, group_by: Literal["text", "file-name"] = "text"
) -> list[str]:
    """The group of each row, called by the smallest of its rows' contents.

    Rows belong together if their texts, or the names of their files, are alike but for what `pattern`
    matches, or if their contents (what a model is given) are equal; and whatever is bound by that from row to
    row. Errors: UserError for rows without such texts or names, and for a pattern that matches none.
    """
    texts = [row.fields.get("target" if group_by == "text" else "name") for row in rows]
    if not all(isinstance(text, str) for text in texts):
        what = (
            "of texts to be written" if group_by == "text" else "of names of files (data.group_by=file-name)"
        )
        raise UserError(f"data.group_pattern is {what}, and this task has none: leave it out")
    if group_by == "file-name":
        texts = [PurePath(str(text)).name for text in texts]
    stems = [re.sub(pattern, "", str(text)) for text in texts]
    if stems == texts:
        raise UserError(
            f"data.group_pattern={pattern} matches no {group_by}: mend the pattern, or leave it out"
        )
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for row, stem in zip(rows, stems, strict=True):
        one, other = sorted((root(f"content {row.key}"), root(f"text {stem}")))
        parent[other] = one  # contents come before texts, and the smallest first
    return [root(f"text {stem}") for stem in stems]
