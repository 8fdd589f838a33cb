"""The common part of objectives on independent examples."""

from foveal.core.state import State
from foveal.data.core.batching import ExampleBatch


class StatelessObjective:
    """An objective that carries no state from batch to batch, and has no preview."""

    def start(self, batch: ExampleBatch) -> State:
        return None

    def preview(self, step: int) -> str | None:
        return None
