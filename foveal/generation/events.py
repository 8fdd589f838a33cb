"""The events that a task yields while it generates. Tasks and the code that shows their results share only
these."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Chunk(NamedTuple):
    """Text of sample `row` that will not change any more. Only tasks that stream yield chunks."""

    row: int
    text: str


class Output(NamedTuple):
    """The finished sample `row`: `text` with all its lines for the screen, and `json` for programs."""

    row: int
    text: str
    json: Mapping[str, Any]
    title: str = ""
    """The heading above the sample if there are several samples."""


class Artifact(NamedTuple):
    """The content of a file for the option `option`.

    `name` is the file's name in a new folder. Without a name, the option's path is the file itself.
    """

    option: str
    name: str
    content: bytes


class Summary(NamedTuple):
    """The last event: how much was generated in how many seconds, and their fields in the JSON result.

    The field `samples` of the result is made of the outputs.
    """

    amount: int
    unit: str
    seconds: float
    json: Mapping[str, Any]


GenerationEvent = Chunk | Output | Artifact | Summary
