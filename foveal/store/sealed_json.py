"""JSON that contains its own sha256, so that any changed byte is detected. This file needs no torch."""

import hashlib
import json
from typing import Any

from foveal.core.errors import UserError
from foveal.core.parse_json import parse_json


def seal_json(content: dict[str, Any]) -> bytes:
    """Return JSON that contains the sha256 of its other content under `sha256`, a key that `content` must not
    have."""
    assert "sha256" not in content
    bare = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    digest = hashlib.sha256(bare.encode()).hexdigest()
    return json.dumps({"sha256": digest, **content}, indent=1, allow_nan=False).encode() + b"\n"


def open_json(content: bytes, name: str) -> dict[str, Any]:
    """Return the content that `seal_json` sealed. `name` is for the error message.

    Raises: UserError: the content is damaged or edited.
    """
    try:
        value = parse_json(content)
        del value["sha256"]
        intact = seal_json(value) == content
    except (ValueError, TypeError, KeyError):
        intact = False
    if not intact:
        raise UserError(f"{name}: damaged or edited: its content does not match its own sha256; restore it")
    return dict(value)
