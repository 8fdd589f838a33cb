"""JSON that anyone may have written: damaged, or nested without end."""

import json
from typing import Any

MAX_DEPTH = 100
"""Most lists and objects inside each other. Python's own limit depends on the caller, and is met only when
the value is written again."""


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises: ValueError: the text is not JSON, or has more than `MAX_DEPTH` levels.
    """
    too_deep = ValueError(f"more than {MAX_DEPTH} lists and objects inside each other")
    try:
        value = json.loads(text)
    except RecursionError:
        raise too_deep from None
    level = _containers([value])
    for _ in range(MAX_DEPTH):
        level = [inner for container in level for inner in _containers(container)]
        if not level:
            return value
    raise too_deep


def _containers(container: Any) -> list[Any]:
    values = container.values() if type(container) is dict else container
    return [value for value in values if type(value) in (dict, list)]
