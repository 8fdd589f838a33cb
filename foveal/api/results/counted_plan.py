"""The plan of a training on many processes."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from foveal.inspection.payload import Payload
from foveal.studies.study_result import StudyResult
from foveal.ui.console import Sections

if TYPE_CHECKING:  # a plan of this machine would count the memory of these imports
    from foveal.studies.plan.plan import Plan
    from foveal.studies.plan.published import PublishedModel


@dataclass(frozen=True, repr=False)
class CountedPlan(StudyResult):
    """What a training takes on many processes, of which one was counted."""

    name: str
    """The preset, file, network or run."""
    plan: "Plan"
    """All that was counted."""
    published: "PublishedModel | None"
    """What is published of the model; None if nothing is."""
    price_per_hour: float | None

    @property
    def parameters(self) -> int:
        """Parameters of the whole model."""
        return self.plan.parameters

    @property
    def memory_bytes(self) -> int:
        """The memory of a process at the peak of a step."""
        return self.plan.memory_total

    @property
    def fits(self) -> bool:
        """Return whether a process fits into the memory of its device."""
        return self.plan.fits

    @property
    def step_seconds(self) -> float:
        """Seconds of a step."""
        return self.plan.time.total

    @property
    def verdict(self) -> str:
        """The plan in a line."""
        from foveal.studies.plan.report import plan_verdict

        return plan_verdict(self.name, self.plan)

    def sections(self) -> Sections:
        """Return the plan in lines, the verdict first."""
        from foveal.studies.plan.report import plan_sections

        return plan_sections(self.name, self.plan, self.published, self.price_per_hour)

    def to_json(self) -> dict[str, Any]:
        """Return the plan for `--json`: bytes, seconds, and tokens a second."""
        from foveal.studies.plan.report import plan_json

        return plan_json(self.plan, self.published, self.price_per_hour)

    def payload(self) -> Payload:
        """Return the plan as tables and pictures."""
        from foveal.studies.plan.page import plan_payload
        from foveal.studies.plan.report import plan_bars

        return plan_payload(self.name, self.sections(), plan_bars(self.plan), CAVEAT, self.to_json())


CAVEAT = (
    "the time is an estimate: no kernel is launched, and messages have no latency. Compare layouts by it, "
    "not days"
)
