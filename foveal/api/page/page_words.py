"""Messages in words of the page: `--row 3` as `row 3`, and `--data` as the field data."""

import re
from collections.abc import Collection, Mapping

from foveal.api.python_words import VALUE

OPTION = re.compile(rf"(?<![\w-])--(?P<name>[a-z][a-z-]*[a-z])(?: (?P<value>{VALUE}))?(?![\w-])")
CONTROL = "control"


class PageWords:
    """Says lines of the command line in the words of a view's form."""

    def __init__(self, fields: Collection[str], sent: Mapping[str, str]):
        """`fields` are the names of the form's fields. `sent` maps paths of sent files to their names."""
        self._fields, self._sent = fields, sent

    def __call__(self, text: str) -> str:
        """Return a line in words of the page."""
        for path, name in self._sent.items():
            text = text.replace(path, name)
        return OPTION.sub(self._field, text)

    def _field(self, match: re.Match[str]) -> str:
        name, value = match["name"].replace("-", "_"), match["value"]
        if name == CONTROL:
            return "the control"
        if name not in self._fields:
            return match[0]
        label = name.replace("_", " ")
        return f"the field {label}" if value is None or value.isupper() else f"{label} {value}"
