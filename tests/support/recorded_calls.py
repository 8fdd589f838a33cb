"""Functions that record their calls."""

from typing import Any

import pytest


def record_calls(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[tuple[Any, ...]]:
    """Replace `owner.name` by an equal function that records. Return the list of each call's arguments."""
    real, calls = getattr(owner, name), list[tuple[Any, ...]]()

    def recorded(*arguments: Any) -> Any:
        calls.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(owner, name, recorded)
    return calls
