"""The check of a target: its laws, with a verdict each."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from foveal.core.terminal_text import counted
from foveal.studies.check.law import LawResult


@dataclass(frozen=True)
class Check:
    """What was checked of a target, and with what result."""

    target: str
    subject: str
    """What the target is, in words."""
    results: tuple[LawResult, ...]
    notes: tuple[str, ...] = ()
    """What was checked otherwise than it is used, in words."""

    @property
    def broken(self) -> list[LawResult]:
        return [result for result in self.results if result.verdict == "BROKEN"]

    @property
    def inapplicable(self) -> list[LawResult]:
        return [result for result in self.results if result.verdict == "not applicable"]

    @property
    def verdict(self) -> str:
        """The result in one line."""
        checked = len(self.results) - len(self.inapplicable)
        count = len(self.inapplicable)
        others = f" ({count} {'does' if count == 1 else 'do'} not apply)" if count else ""
        if not self.broken:
            return f"{self.target}: {self.subject} keeps {counted(checked, 'law')}{others}"
        return f"{self.target}: {'; '.join(_first_of_each_part(self.broken))}"


@dataclass(frozen=True)
class Target:
    """What is checked: its name, what it is in words, and its laws, which are checked as they are read."""

    name: str
    subject: str
    results: Iterable[LawResult]
    notes: tuple[str, ...] = ()

    def check(self) -> Check:
        """Check all laws."""
        return Check(self.name, self.subject, tuple(self.results), self.notes)


def _first_of_each_part(broken: Iterable[LawResult]) -> Iterator[str]:
    """Yield the first broken law of each part in words; the others often follow from it."""
    first: dict[str, LawResult] = {}
    for result in broken:
        first.setdefault(result.part, result)
    for part, result in first.items():
        yield f"{part} breaks '{result.law}': {result.in_words}"
