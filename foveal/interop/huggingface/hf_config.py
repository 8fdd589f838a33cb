"""Checked reading of a Hugging Face config.json: each error is one line that names the setting."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from foveal.core.errors import UserError

MAX_CONFIG_SIZE = 1 << 20
"""The largest size: enough for any model, and products of three sizes don't overflow."""


class HFConfig:
    """The `content` of the file `path`. For a value that is null or missing, methods return the default.

    All methods raise a UserError if a value is not as expected.
    """

    def __init__(self, content: Mapping[str, Any], path: Path):
        self.content, self.path = content, path

    def get(self, key: str, default: Any) -> Any:
        """Return a value without a check."""
        value = self.content.get(key)
        return default if value is None else value

    def size(self, key: str, default: int) -> int:
        """Return an integer of at least 1."""
        value = self.get(key, default)
        if type(value) is not int or not 1 <= value <= MAX_CONFIG_SIZE:
            raise self.error(key, f"expected a whole number from 1 to {MAX_CONFIG_SIZE}")
        return value

    def boolean(self, key: str, default: bool) -> bool:
        value = self.get(key, default)
        if not isinstance(value, bool):
            raise self.error(key, "expected true or false")
        return value

    def fraction(self, key: str, default: float) -> float:
        """Return a number from 0 to 1, without 1."""
        value = self.get(key, default)
        if type(value) not in (int, float) or not 0 <= value < 1:
            raise self.error(key, "expected a number from 0, below 1")
        return float(value)

    def positive(self, key: str, default: float) -> float:
        """Return a number above 0."""
        value = self.get(key, default)
        if type(value) not in (int, float) or not 0 < value < math.inf:
            raise self.error(key, "expected a number above 0")
        return float(value)

    def section(self, key: str) -> "HFConfig":
        """Return a section with settings of its own, empty if it is missing."""
        value = self.get(key, {})
        if not isinstance(value, dict):
            raise self.error(key, "expected a section of settings")
        return HFConfig(value, self.path)

    def choice(self, key: str, default: str, known: Mapping[str, str]) -> str:
        """Return Foveal's name for a Hugging Face name, from the table `known`."""
        value = self.get(key, default)
        if not isinstance(value, str) or value not in known:
            raise self.error(key, f"Foveal supports only {', '.join(known)}")
        return known[value]

    def require(self, key: str, value: object) -> None:
        """Check that a setting has its default `value`, the only one that Foveal supports."""
        actual = self.get(key, value)
        if type(actual) is not type(value) or actual != value:
            raise self.error(key, f"Foveal supports only {value}")

    def error(self, key: str, reason: str) -> UserError:
        """Return the error for a setting, with its file, value and reason."""
        value = repr(self.content.get(key))
        return UserError(f"{self.path}: {key}={value[:60]}: {reason}")
