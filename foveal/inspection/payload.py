"""The result of a view: panels, facts, and what the numbers do not say. Renderers know no views."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from foveal.core.finite_json import finite_json
from foveal.inspection.panels import Panel, Table
from foveal.metrics.report import format_table

Exactness = Literal["exact", "recomputed", "approximated"]
Facts = Sequence[tuple[str, str]]
"""Names and values, printed side by side."""


@dataclass(frozen=True)
class Payload:
    """All that a view says about a run or a model. Pictures, terminals, JSON and pages show the same."""

    view: str
    subject: str
    """The path of the run, or the name of the model."""
    title: str
    panels: tuple[Panel, ...]
    caveat: str
    """What the numbers do not say, in a sentence or two."""
    exactness: Exactness
    facts: tuple[tuple[str, str], ...] = ()
    values: dict[str, Any] = field(default_factory=dict)
    """Numbers for programs, beside those of the panels."""

    def __post_init__(self) -> None:
        if not self.caveat.strip():
            raise ValueError(f"{self.view}: say what the numbers do not say: the caveat is empty")

    def drawn(self) -> list[Panel]:
        """Return the panels of a picture. Tables are for reading, and are drawn only if nothing else is."""
        return [panel for panel in self.panels if not isinstance(panel, Table)] or [*self.panels]

    def to_json(self) -> dict[str, Any]:
        """Return everything but pixels. Numbers that are not finite are None."""
        panels = [
            {"kind": type(panel).__name__.lower(), "title": panel.title, "sentence": panel.sentence()}
            | panel.to_json()
            for panel in self.panels
        ]
        about = {"view": self.view, "of": self.subject, "title": self.title}
        honest = {"caveat": self.caveat, "exactness": self.exactness, "facts": [*self.facts]}
        content: dict[str, Any] = finite_json(about | self.values | honest | {"panels": panels})
        return content

    def sections(self) -> Iterator[str | Facts]:
        """Yield texts and facts, in the order in which they are printed."""
        for panel in self.panels:
            if isinstance(panel, Table):
                title = f"{panel.title}\n" if panel.title else ""
                yield f"{title}{format_table([panel.columns, *panel.rows])}\n"
        yield [*self.facts, ("caveat", self.caveat), ("numbers", self.exactness)]
