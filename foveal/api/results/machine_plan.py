"""The plan of a training on this machine."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from foveal.api.training.cost import TrainingCost
from foveal.core.terminal_text import counted
from foveal.inspection.payload import Payload
from foveal.studies.plan.hardware import THIS_MACHINE
from foveal.studies.study_result import StudyResult
from foveal.ui.console import Sections, format_bytes, format_duration

Facts = list[tuple[str, str]]


@dataclass(frozen=True, repr=False)
class MachinePlan(StudyResult):
    """What a training takes on this machine."""

    name: str
    """The preset, file, network or run."""
    parameters: int
    unit: str
    """The unit of a step's inputs."""
    cost: TrainingCost
    free_bytes: int | None
    """The memory that this process could still take; None if unknown."""
    tensors: Counter[Any]
    """Bytes of the tensors of a step at its peak, by kind; empty if they can't be counted."""

    @property
    def memory_bytes(self) -> int:
        """The peak memory of the process, or of the GPU."""
        return self.cost.memory_bytes

    @property
    def epoch_seconds(self) -> float | None:
        """Seconds of the steps of an epoch and of an evaluation; None without steps."""
        steps = self.cost.steps
        return None if steps is None else steps.epoch_seconds + steps.evaluation_seconds

    def sections(self) -> Sections:
        """Return the plan in lines, the verdict first."""
        memory: Facts = [(kind, format_bytes(size)) for kind, size in self.tensors.most_common()]
        lines: list[str | Facts] = [
            f"{self.verdict}\n",
            [("parameters", f"{self.parameters:,}"), *self._facts()],
        ]
        if memory:
            total = ("in all", format_bytes(self.tensors.total()))
            lines += ["\ntensors of a step at its peak", [*memory, total]]
        return lines

    @property
    def verdict(self) -> str:
        """The plan in a line."""
        memory = f"{self.name} on this machine: about {format_bytes(self.memory_bytes)} of memory"
        epoch = self.epoch_seconds
        return memory if epoch is None else f"{memory}, {format_duration(epoch)} an epoch with its evaluation"

    def _facts(self) -> Facts:
        free = "unknown" if self.free_bytes is None else format_bytes(self.free_bytes)
        facts = [("memory", f"about {format_bytes(self.memory_bytes)} at its peak; free: {free}")]
        if (steps := self.cost.steps) is None:
            return [*facts, ("steps", "none")]
        evaluations = counted(steps.evaluations, "evaluation")
        step, all_steps = f"{1000 * steps.step_seconds:.0f} ms", f"{steps.total_steps:,} steps"
        return [
            *facts,
            ("step", f"{step} for {steps.tokens_per_step:,} {self.unit}"),
            ("epoch", f"{steps.steps_per_epoch:,.0f} steps, {format_duration(steps.epoch_seconds)}"),
            ("evaluation", format_duration(steps.evaluation_seconds)),
            (
                "training",
                f"{all_steps} and {evaluations}, {format_duration(steps.seconds)}",
            ),
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the plan for `--json`: bytes and seconds."""
        steps = self.cost.steps
        result = {
            "hardware": {"name": THIS_MACHINE},
            "parameters": self.parameters,
            "unit": self.unit,
            "memory": {"peak": self.memory_bytes, "free": self.free_bytes, "tensors": dict(self.tensors)},
        }
        if steps is None:
            return result
        return result | {
            "batch_tokens": steps.tokens_per_step,
            "steps_per_epoch": steps.steps_per_epoch,
            "steps": steps.total_steps,
            "evaluations": steps.evaluations,
            "seconds": {
                "step": steps.step_seconds,
                "epoch_steps": steps.epoch_seconds,
                "evaluation": steps.evaluation_seconds,
                "epoch": self.epoch_seconds,
                "training": steps.seconds,
            },
        }

    def payload(self) -> Payload:
        """Return the plan as tables and pictures."""
        from foveal.studies.plan.page import part_bars, plan_payload

        memory = {"peak": self.memory_bytes / MB, "free": (self.free_bytes or 0) / MB}
        tensors = {kind: size / MB for kind, size in self.tensors.most_common()}
        bars = [part_bars("memory of the process", memory, "MB")]
        if tensors:
            bars.append(part_bars("tensors of a step at its peak", tensors, "MB"))
        if (steps := self.cost.steps) is not None:
            seconds = {"steps": steps.epoch_seconds, "evaluation": steps.evaluation_seconds}
            bars.append(part_bars("time of an epoch", seconds, "seconds"))
        return plan_payload(self.name, self.sections(), bars, CAVEAT, self.to_json())


MB = 1e6
CAVEAT = "a few steps were measured here and now: other work on this machine makes steps longer"
