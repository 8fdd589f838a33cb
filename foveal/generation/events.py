"""What a task yields while it generates: the only vocabulary between tasks and whoever shows the results."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Chunk(NamedTuple):
    """Text of sample `row` that will not change any more; only tasks that stream yield chunks."""

    row: int
    text: str


class Output(NamedTuple):
    """The finished sample `row`: `text` with all its lines for the screen, and `json` for programs."""

    row: int
    text: str
    json: Mapping[str, Any]
    title: str = ""
    """Stands above the sample where there are several."""


class Artifact(NamedTuple):
    """The content of a file that the option `option` names.

    `name` is that of a file in a new folder; without a name the content is the file itself.
    """

    option: str
    name: str
    content: bytes


class Summary(NamedTuple):
    """The last event: how much was generated in how many seconds, and what the JSON result says of both."""

    amount: int
    unit: str
    seconds: float
    json: Mapping[str, Any]


GenerationEvent = Chunk | Output | Artifact | Summary
