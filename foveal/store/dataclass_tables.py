"""Dataclasses as tables of JSON files, checked when they are read."""

from dataclasses import fields
from typing import Any, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError

from foveal.core.errors import UserError

T = TypeVar("T")


def dataclass_to_dict(value: Any) -> dict[str, Any]:
    """Return a dataclass's fields by their keys in files: their names, or the `key` in their metadata."""
    return {key: getattr(value, name) for key, name in _field_names(type(value)).items()}


def dataclass_from_dict(cls: type[T], table: dict[str, Any], name: str) -> T:
    """Return the dataclass that `dataclass_to_dict` converted. `name` is for the error message.

    Raises: UserError: a field is missing or unknown, or its value has another type.
    """
    names, types = _field_names(cls), get_type_hints(cls)
    if differing := sorted(names.keys() ^ table.keys()):
        raise UserError(f"{name}: {', '.join(differing)}: fields that this version of Foveal does not write")
    for key, value in table.items():
        try:
            TypeAdapter(types[names[key]]).validate_python(value, strict=True)
        except ValidationError:
            raise UserError(f"{name}: {key} has a value that Foveal does not write; restore it") from None
    return cls(**{names[key]: value for key, value in table.items()})


def _field_names(cls: type) -> dict[str, str]:
    """Map each field's key in files to the field's name."""
    return {item.metadata.get("key", item.name): item.name for item in fields(cls)}
