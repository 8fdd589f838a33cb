"""The rows that reading skips."""

from typing import Any

from foveal.core.errors import UserError
from foveal.data.files.data_part import open_part
from tests.support.clip_folders import CLIP_CONFIG


def skipped_rows(data_format: Any, data: str, **settings: Any) -> list[tuple[str, str]]:
    """Return the location and the reason of each row that is skipped in reading."""
    skipped: list[Any] = []
    try:
        [*data_format.read(open_part(data), CLIP_CONFIG.model_copy(update=settings), skipped)]
    except UserError:
        assert skipped
    return [(row.location.removeprefix(data).strip("/, "), row.reason) for row in skipped]
