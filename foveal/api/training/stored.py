"""The options of a training whose data may be values in memory, which are stored as files."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from foveal.api.training.options import TrainingOptions, setting
from foveal.api.values.reader import training_reader
from foveal.api.values.splits import store_splits
from foveal.config.old_names import flatten


@dataclass(frozen=True)
class StoredTraining:
    """What the command line would say about a training from Python."""

    data: str
    options: TrainingOptions
    settings: Mapping[str, Any]
    """The user's settings by their whole keys."""
    number_columns: frozenset[str]
    """The columns of numbers and truth values."""

    @property
    def overrides(self) -> tuple[str, ...]:
        """The user's settings as `key.sub=value`.

        Raises: UserError: a value is of a type that no setting has.
        """
        return tuple(setting(key, value) for key, value in self.settings.items())


def store_training(
    data: Any, valid: Any, test: Any, options: TrainingOptions, settings: Mapping[str, Any] | None
) -> StoredTraining:
    """Return a training with the paths of its data. The label and the held-out data of `options` become those
    that are stored.

    Raises: UserError: values are of no kind that is read, or a split is given twice.
    """
    given = dict(flatten(settings or {}))
    text, label = options.text or given.get("data.text"), options.label or given.get("data.label")
    reader = training_reader(options.task, options.model, text, label, options.target, options.start_from)
    stored, held_out = store_splits(data, valid, test, reader)
    options = replace(
        options,
        label=None if "data.label" in given else stored.label,
        valid=held_out.get("valid"),
        test=held_out.get("test"),
    )
    return StoredTraining(stored.path, options, given, stored.number_columns)
