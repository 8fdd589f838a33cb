"""What tasks on examples that do not know each other have in common."""

from foveal.core.state import State
from foveal.data.core.batching import ExampleBatch


class StatelessObjective:
    """Nothing is carried from one to the next, and a number says how well it goes."""

    def start(self, batch: ExampleBatch) -> State:
        return None

    def preview(self, step: int) -> str | None:
        return None
