"""A law under check, and its verdict with the smallest failing case."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch

from foveal.core.errors import FAILURES, UserError, describe_failure
from foveal.laws.law import LawBroken
from foveal.ops.jit.dispatch import reference_only
from foveal.plugins.loading import line_in_plugin

Verdict = Literal["holds", "BROKEN", "not applicable"]


class ComputePath(NamedTuple):
    """A way to compute a model: in a precision, by the equations or by the fast paths."""

    name: str
    dtype: torch.dtype
    tolerance: float
    """The difference that counts as rounding, relative to the largest number, or to 1 if all are smaller."""
    context: Callable[[], AbstractContextManager[object]]


REFERENCE = ComputePath("float64", torch.float64, 1e-9, reference_only)
DEFAULT = ComputePath("float32 on the default path", torch.float32, 1e-4, nullcontext)
PATHS = (REFERENCE, DEFAULT)


@dataclass(frozen=True)
class Law:
    """A law of a part, to be checked, or the reason why it does not apply."""

    name: str
    check: Callable[[ComputePath, int], object] = lambda path, length: None
    """Raises `LawBroken` if the law is broken on a path, for inputs of a length."""
    longest: int = 0
    """The length that is checked; 0 if the law has none."""
    paths: tuple[ComputePath, ...] = (REFERENCE,)
    reason: str = ""
    """Why the law does not apply; empty if it does."""


@dataclass(frozen=True)
class LawResult:
    """Whether a part keeps a law."""

    part: str
    law: str
    verdict: Verdict
    problem: str = ""
    """What is wrong, or why the law does not apply; empty if the part keeps the law."""
    case: str = ""
    """The smallest failing case: path, length, row and position."""
    difference: float | None = None
    """The largest difference of two results that must agree, if that is what is wrong."""

    @property
    def in_words(self) -> str:
        """Return what is wrong or does not apply, with the smallest failing case; empty if the law holds."""
        size = "" if self.difference is None else f"largest difference {self.difference:.3g}"
        details = "; ".join(filter(None, (self.case, size)))
        return f"{self.problem} ({details})" if details else self.problem


def on_path(
    law: Callable[[Any, int], object], trials: Mapping[ComputePath, Any]
) -> Callable[[ComputePath, int], object]:
    """Return the check of a law on a path, for which there is a trial."""
    return lambda path, length: law(trials[path], length)


def law_without_length(name: str, check: Callable[[], object]) -> Law:
    """Return a law that is checked once, on the reference path."""
    return Law(name, lambda path, length: check())


def law_of_run(name: str, check: Callable[[], object], reason: str = "") -> Law:
    """Return a law that is checked once, on the path on which runs are trained."""
    return Law(name, lambda path, length: check(), paths=(DEFAULT,), reason=reason)


def check_laws(part: str, laws: Callable[[], Iterable[Law]]) -> Iterator[LawResult]:
    """Yield the result of each law of a part. If the part can't be made, that is the only result."""
    try:
        listed = [*laws()]
    except FAILURES as error:
        yield LawResult(part, "it can be made", "BROKEN", explain(error))
        return
    for law in listed:
        yield check_law(part, law)


def check_law(part: str, law: Law) -> LawResult:
    """Check a law on each of its paths. The first path on which it is broken is reported."""
    if law.reason:
        return LawResult(part, law.name, "not applicable", law.reason)
    for path in law.paths:
        try:
            failure = _first_failure(law, path)
        except FAILURES as error:
            return LawResult(part, law.name, "BROKEN", explain(error), _name_of(path, law))
        if failure is not None:
            length, broken = failure
            case = ", ".join(filter(None, (f"length {length}" if length else "", broken.place)))
            case = ", ".join(filter(None, (case, _name_of(path, law))))
            return LawResult(part, law.name, "BROKEN", broken.problem, case, broken.difference)
    return LawResult(part, law.name, "holds")


def _name_of(path: ComputePath, law: Law) -> str:
    """Return the name of a path; empty if the law has no other."""
    return path.name if len(law.paths) > 1 else ""


def _first_failure(law: Law, path: ComputePath) -> tuple[int, LawBroken] | None:
    """Return the smallest length at which a law is broken, and how; None if it holds."""
    if (longest := _failure(law, path, law.longest)) is None:
        return None
    for length in range(1, law.longest):
        try:
            broken = _failure(law, path, length)
        except FAILURES:  # a module may need some length
            continue
        if broken is not None:
            return length, broken
    return law.longest, longest


def _failure(law: Law, path: ComputePath, length: int) -> LawBroken | None:
    torch.manual_seed(0)
    try:
        with path.context():
            law.check(path, length)
    except LawBroken as broken:
        return broken
    return None


def explain(error: BaseException) -> str:
    """Return an error in one line, with its line in the plugin if there is one."""
    if isinstance(error, UserError):
        return str(error)
    problem, place = describe_failure(error), line_in_plugin(error)
    return f"{place}: {problem}" if place else problem
