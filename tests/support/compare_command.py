"""`foveal compare` of tiny models."""

import json
from typing import Any

from tests.support.command_line import TINY_MODEL, succeed

TINY = ("text.txt", *TINY_MODEL, "training.statistics=false")


def compared(*arguments: object) -> dict[str, Any]:
    """Return the JSON of a comparison."""
    result: dict[str, Any] = json.loads(succeed("compare", *arguments, "--json").out)
    return result
