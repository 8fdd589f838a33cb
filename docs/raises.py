"""An extension of griffe, which parses the docstrings: `Raises:` lines become a section.

Griffe reads `Raises: UserError: there is no such file.` as text, and as a parameter if it follows those.
"""

import re
from typing import Any

from griffe import Extension, Object

PARAGRAPH = re.compile(r"\n*^Raises: (?:.+\n?)+", re.MULTILINE)
"""The lines of errors, up to an empty line."""
NUMPY_SECTION = re.compile(r"^-{3,}$", re.MULTILINE)


class RaisesSections(Extension):
    """Gives every docstring its section of errors."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = with_raises_section(obj.docstring.value)


def with_raises_section(docstring: str) -> str:
    """Return a docstring with its errors as a section at the end, in the style of its other sections."""
    paragraph = PARAGRAPH.search(docstring)
    if paragraph is None:
        return docstring
    entries = " ".join(paragraph[0].split()).removeprefix("Raises: ").split(" Raises: ")
    errors = [entry.split(": ", 1) for entry in entries]
    rest = docstring[: paragraph.start()] + "\n" + docstring[paragraph.end() :]
    if NUMPY_SECTION.search(docstring):
        section = "Raises\n------\n" + "\n".join(f"{error}\n    {reason}" for error, reason in errors)
    else:
        section = "Raises:\n" + "\n".join(f"    {error}: {reason}" for error, reason in errors)
    return f"{rest.strip()}\n\n{section}"
