"""The splits of a training, of which each can be values in memory or files."""

from typing import Any, NamedTuple

from foveal.api.values.columns import split_tables
from foveal.api.values.reader import Reader
from foveal.api.values.stored import StoredValues, store_values, stored_path
from foveal.core.errors import UserError


class StoredSplits(NamedTuple):
    """The data to train on, and the paths of the held-out splits that were given."""

    train: StoredValues
    held_out: dict[str, str]


def store_splits(data: Any, valid: Any, test: Any, reader: Reader) -> StoredSplits:
    """Return DATA for each split: paths unchanged, and values as files in the cache.

    Raises: UserError: values are of no kind that is read, or a split is given twice.
    """
    splits = split_tables(data)
    for split, values in {"valid": valid, "test": test}.items():
        if values is not None and split in splits:
            raise UserError(f"{split}=: the data have a split of this name, too: give {split} once")
    stored = store_values(splits.pop("train"), reader)
    reader = reader._replace(kind=reader.kind or stored.kind, target=stored.label or reader.target)
    held_out = {
        split: stored_path(values, reader)
        for split, values in ({"valid": valid, "test": test} | splits).items()
        if values is not None
    }
    return StoredSplits(stored, held_out)
