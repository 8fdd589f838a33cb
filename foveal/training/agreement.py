"""What all ranks decide together between steps: signals, and a failure on the main rank, end the training on
all."""

from typing import Any

from foveal.core.signals import Interrupted, SignalHandler
from foveal.distributed.world import ONE_PROCESS, World


class MainRankLeft(Exception):
    """The main rank ends the training after a failure of its own. It saves a checkpoint, for which it needs
    all."""


class Agreement:
    """Messages that all ranks exchange at the same places. A signal to any rank is one to all."""

    def __init__(self, world: World, signals: SignalHandler):
        self.world, self.signals = world, signals

    def exchange(self, message: Any) -> list[Any]:
        """Return the messages of all ranks.

        Raises: Interrupted: a signal has arrived at one of the ranks.
        Raises: MainRankLeft: the main rank has called `leave`.
        """
        answers = self.world.exchange((self.signals.pending, False, message))
        for number, leaves, _ in answers:
            if number is not None:
                raise Interrupted(number)
            if leaves:
                raise MainRankLeft
        return [answer for _, _, answer in answers]

    def poll(self) -> None:
        """Raise `Interrupted` if a signal has arrived. Several ranks wait for their next message."""
        if self.world.size == 1:
            self.signals.poll()

    def leave(self) -> None:
        """End the training of the other ranks, at their next message."""
        if self.world.size > 1:
            self.world.exchange((None, True, None))


ALONE = Agreement(ONE_PROCESS, SignalHandler())
"""That of a single process, to which no signals come."""
