"""Parts of rows about things in several variants: held out are whole things, or some variants of each."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Literal

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.core.runtime import derived_seed
from foveal.data.core.hash_split import Part, Shares, check_shares, content, part_of_row
from foveal.data.core.rows import Row

EVERY = 3
"""Of so many variants of a thing one is held out."""


def split_groups(rows: Sequence[Row], config: DataConfig, shares: Shares) -> Iterator[tuple[Part, Row]]:
    """Each row with its part; `data.hold` says of what the held-out parts are made.

    * groups: a group goes to a part by the hash of its content, as `shares` say.
    * members: every third of a group's different rows, in their order, is held out, for the one part or the
      other by its hash, in the proportion of their shares. With which it begins is the group's hash: else
      where all things have the same variants, some of these would not be seen of any. A group of one or two
      rows is only trained on.

    Without shares all are trained on. Errors: UserError for shares that leave nothing to train on, and as
    `groups_of`.
    """
    check_shares(shares)
    if not shares:
        yield from (("train", row) for row in rows)
        return
    groups = groups_of(rows, config.group, config.group_of)
    if config.hold == "groups":
        yield from ((part_of_row(group, shares), row) for group, row in zip(groups, rows, strict=True))
        return
    members: dict[str, dict[str, int]] = defaultdict(dict)
    for group, row in zip(groups, rows, strict=True):
        members[group].setdefault(content(row), len(members[group]))
    for group, row in zip(groups, rows, strict=True):
        place, count = members[group][content(row)], len(members[group])
        kept = count < EVERY or (place + derived_seed(group)) % EVERY
        yield ("train" if kept else _held_out(row, shares)), row


def _held_out(row: Row, shares: Shares) -> Part:
    """The part of a row that is not trained on."""
    *others, last = shares
    whole = sum(shares.values())
    part = part_of_row(content(row), {other: shares[other] / whole for other in others})
    return last if part == "train" else part


def groups_of(rows: Sequence[Row], pattern: str, of: Literal["text", "name"] = "text") -> list[str]:
    """The group of each row, called by the smallest of its rows' contents.

    Rows belong together if their texts, or the names of their files, are alike but for what `pattern`
    matches, or if their contents (what a model is given) are equal; and whatever is bound by that from row to
    row. Errors: UserError for rows without such texts or names, and for a pattern that matches none.
    """
    texts = [row.fields.get("target" if of == "text" else "name") for row in rows]
    if not all(isinstance(text, str) for text in texts):
        what = "of texts to be written" if of == "text" else "of names of files (data.group_of=name)"
        raise UserError(f"data.group is {what}, and this task has none: leave it out")
    if of == "name":
        texts = [PurePath(str(text)).name for text in texts]
    stems = [re.sub(pattern, "", str(text)) for text in texts]
    if stems == texts:
        raise UserError(f"data.group={pattern} matches no {of}: mend the pattern, or leave it out")
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for row, stem in zip(rows, stems, strict=True):
        one, other = sorted((root(f"content {content(row)}"), root(f"text {stem}")))
        parent[other] = one  # contents come before texts, and the smallest first
    return [root(f"text {stem}") for stem in stems]
