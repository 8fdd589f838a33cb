"""What data that is asked about brings of its answers, if it does."""

from contextlib import suppress

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.data.core.format import DataFormat
from foveal.data.core.rows import Row


def read_labeled_rows(form: DataFormat, data: str, config: DataConfig) -> list[Row]:
    """Those rows that have an answer; what is wrong with them is told where they are read as questions."""
    with suppress(UserError):
        return [*form.read(data, config, [])]
    return []
