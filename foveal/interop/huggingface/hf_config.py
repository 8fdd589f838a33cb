"""The values of a Hugging Face config.json, read with care: each error is one line that names the setting."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from foveal.core.errors import UserError

MAX_CONFIG_SIZE = 1 << 20
"""No size is larger: enough for any model, and products of three sizes don't overflow."""


class HFConfig:
    """`content` of the file `path`; a value that is null or not there is the default."""

    def __init__(self, content: Mapping[str, Any], path: Path):
        self.content, self.path = content, path

    def get(self, key: str, default: Any) -> Any:
        value = self.content.get(key)
        return default if value is None else value

    def size(self, key: str, default: int) -> int:
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
        value = self.get(key, default)
        if type(value) not in (int, float) or not 0 <= value < 1:
            raise self.error(key, "expected a number from 0, below 1")
        return float(value)

    def choice(self, key: str, default: str, known: Mapping[str, str]) -> str:
        """What `known` makes of the value."""
        value = self.get(key, default)
        if not isinstance(value, str) or value not in known:
            raise self.error(key, f"ours has {', '.join(known)}")
        return known[value]

    def require(self, key: str, value: object) -> None:
        """Refuse a model in which `key` is not `value`, the default and the only one that ours has."""
        found = self.get(key, value)
        if type(found) is not type(value) or found != value:
            raise self.error(key, f"ours has {value} only")

    def error(self, key: str, reason: str) -> UserError:
        shown = repr(self.content.get(key))
        return UserError(f"{self.path}: {key}={shown[:60]}: {reason}")
