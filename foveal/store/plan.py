"""The plan of a training, `plan.json` of a run: its number of steps, and when the learning rate falls."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Plan:
    """The plan made at step `decided_at`: the learning rate falls from step `decay_start` to `total_steps`.

    A one-cycle schedule begins at `decided_at`, and has its peak just before `decay_start`.
    """

    total_steps: int
    decay_start: int
    decided_at: int = field(default=0, metadata={"key": "decided"})
