"""Settings on the command line for the data that a trained run reads: columns and encoding of tables."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from foveal.config import parse_overrides
from foveal.config.old_names import flatten
from foveal.core.errors import UserError
from foveal.tasks.config import from_tables
from foveal.tasks.registry import all_tasks
from foveal.tasks.session import Session

ENCODING = "encoding"
"""The setting of the section `data` that says how tables are decoded."""


def with_columns(session: Session, overrides: Sequence[str]) -> Session:
    """Return the run with `overrides`: names of columns, such as data.text=review, and data.encoding.

    Raises: UserError: an override is of another setting, or of a column that the run does not read.
    """
    if not overrides:
        return session
    columns = column_settings(session.task)
    named: dict[str, str] = {}
    for override in overrides:
        ((key, _),) = flatten(parse_overrides([override]))
        if key not in columns:
            known = f"only {', '.join(columns)}" if columns else "no setting"
            raise UserError(
                f"{override}: {known} can be given for a trained run (columns and encoding); leave it out"
            )
        named[key.removeprefix("data.")] = override.partition("=")[2].strip("\"'")
    return with_data_settings(session, named)


def column_settings(task: Any) -> list[str]:
    """Return the settings of tables that the task reads: the names of columns, and the encoding."""
    names = dict.fromkeys(name for other in all_tasks().values() for name in other.columns)
    read = task.settings_read()
    return [key for name in (*names, ENCODING) if (key := f"data.{name}") in read or name in task.columns]


def with_data_settings(session: Session, settings: Mapping[str, Any]) -> Session:
    """Return the run with other `settings` of the section `data`.

    Raises: ConfigError: a value is not valid.
    """
    task = session.task
    config = from_tables(session.config.model_dump(), {"data": settings})
    return replace(session, task=type(task)(config, task.processor, task.model))
