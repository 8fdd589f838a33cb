"""A check for people, for programs, and as a page."""

from itertools import groupby
from typing import Any

from foveal.core.finite_json import finite_json
from foveal.inspection.panels import Table
from foveal.inspection.payload import Payload
from foveal.studies.check.check import Check
from foveal.studies.check.law import LawResult

CAVEAT = (
    "the laws are checked on small inputs: a law that is broken is a mistake, but laws that hold do not "
    "prove that there is none"
)
COLUMNS = ("part", "law", "result")


def check_sections(check: Check) -> list[str | list[tuple[str, str]]]:
    """Return the laws of each part with their verdicts."""
    sections: list[str | list[tuple[str, str]]] = []
    for part, results in groupby(check.results, lambda result: result.part):
        sections += [f"\n{part}" if sections else part, [(each.law, _result(each)) for each in results]]
    return sections


def check_json(check: Check) -> dict[str, Any]:
    """Return the check for programs."""
    return {
        "target": check.target,
        "subject": check.subject,
        "holds": not check.broken,
        "broken": len(check.broken),
        "not_applicable": len(check.inapplicable),
        "notes": [*check.notes],
        "laws": [law_json(result) for result in check.results],
    }


def law_json(result: LawResult) -> dict[str, Any]:
    """Return the result of a law for programs."""
    return {
        "part": result.part,
        "law": result.law,
        "verdict": result.verdict,
        "holds": result.verdict == "holds",
        "problem": result.problem,
        "case": result.case,
        "difference": finite_json(result.difference),
    }


def check_payload(check: Check) -> Payload:
    """Return the check as a table."""
    rows = tuple((each.part, each.law, _result(each)) for each in check.results)
    facts = (("target", check.subject), *(("note", note) for note in check.notes))
    panels = (Table("", COLUMNS, rows),)
    return Payload("check", check.target, check.verdict, panels, CAVEAT, "exact", facts, check_json(check))


def _result(result: LawResult) -> str:
    return f"{result.verdict}: {result.in_words}" if result.problem else result.verdict
