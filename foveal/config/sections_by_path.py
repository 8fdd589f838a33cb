"""A config as its sections by their dotted paths, such as `model.encoder`: keys, meanings and TOML."""

import ast
import inspect
import json
import textwrap
from collections.abc import Container, Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from foveal.config.values import ReadIf, StrictModel

Sections = Mapping[str, StrictModel]
"""Sections by their dotted paths. The settings of a section are its fields that are no sections."""


class UnreadReason(NamedTuple):
    """The choice that leaves a setting unread: the key and value of another setting."""

    key: str
    value: Any
    values_to_set: tuple[str | bool, ...] | None = None
    """The values of the other setting with which the setting is read. () stands for every value except the
    empty one.

    None if the other setting is the task or the encoder, which users do not change for the sake of a setting.
    """

    def __str__(self) -> str:
        return f"{self.key}={setting_text(self.value)}"


def setting_text(value: Any) -> str:
    """Return a value as users write it on the command line."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def nested_sections(section: StrictModel, path: str) -> dict[str, StrictModel]:
    """Return a section and all sections inside it by their paths."""
    sections = {path: section}
    for name in type(section).model_fields:
        value = getattr(section, name)
        if isinstance(value, StrictModel):
            sections |= nested_sections(value, f"{path}.{name}")
    return sections


def setting_keys(sections: Sections) -> Iterator[str]:
    """Yield the dotted keys of all settings."""
    for path, section in sections.items():
        yield from (f"{path}.{name}" for name in _settings(section))


def unread_fields(sections: Sections) -> dict[str, UnreadReason]:
    """Return the keys of settings and sections that other settings of their section leave unread."""
    unread: dict[str, UnreadReason] = {}
    for path, section in sections.items():
        for name, field in type(section).model_fields.items():
            marks = [mark for mark in field.metadata if isinstance(mark, ReadIf)]
            if marks and not any(mark.holds(section) for mark in marks):
                first = marks[0]
                reason = UnreadReason(f"{path}.{first.field}", getattr(section, first.field), first.values)
                unread[f"{path}.{name}"] = reason
    return unread


def to_toml(sections: Sections, read: Container[str]) -> str:
    """Return the settings that are `read` as TOML, each with its meaning as a comment."""
    tables = []
    for path, section in sections.items():
        comments = meanings(type(section))
        lines = [
            f"{name} = {_toml_value(value)}" + (f"  # {comments[name]}" if name in comments else "")
            for name, value in _settings(section).items()
            if f"{path}.{name}" in read
        ]
        tables += ["\n".join([f"[{path}]", *lines])] if lines else []
    return "\n\n".join(tables) + "\n"


@cache
def meanings(section: type[StrictModel]) -> dict[str, str]:
    """Return the first line of each field's docstring, or its `description`; none where the source of a class
    is not at hand."""
    described = {name: field.description for name, field in section.model_fields.items()}
    meaning_of = {name: text.partition("\n")[0] for name, text in described.items() if text}
    for base in reversed(section.__mro__):
        if issubclass(base, StrictModel) and base is not StrictModel:
            meaning_of |= _own_meanings(base)
    return meaning_of


def _own_meanings(section: type[StrictModel]) -> dict[str, str]:
    try:
        module = ast.parse(textwrap.dedent(inspect.getsource(section)))
    except (OSError, SyntaxError):  # no file, or one that was edited since it was imported
        return {}
    meaning_of: dict[str, str] = {}
    body = [line for node in module.body if isinstance(node, ast.ClassDef) for line in node.body]
    for field, below in pairwise(body):
        if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            meaning_of[field.target.id] = str(below.value.value).strip().partition("\n")[0]
    return meaning_of


def _settings(section: StrictModel) -> dict[str, Any]:
    values = {name: getattr(section, name) for name in type(section).model_fields}
    return {name: value for name, value in values.items() if not isinstance(value, StrictModel)}


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON's escapes are TOML's. Beyond JSON, what a terminal would obey is an escape, too.
        text = json.dumps(value, ensure_ascii=False)
        return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in text)
    return repr(value)
