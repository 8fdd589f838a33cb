"""What all ranks decide together between steps or batches: a signal to one rank, or its failure, ends the
work of all."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from foveal.core.errors import UserError
from foveal.core.signals import Interrupted, SignalHandler
from foveal.distributed.world import ONE_PROCESS, RankLost, World, lost_rank


class FailedElsewhere(Exception):
    """Another rank has failed, and says why. In a training, it saves a checkpoint, for which it needs all."""


class Agreement:
    """Messages that all ranks exchange at the same places. A signal to any rank is one to all."""

    def __init__(self, world: World, signals: SignalHandler):
        self.world, self.signals = world, signals

    def exchange(self, message: Any) -> list[Any]:
        """Return the messages of all ranks.

        Raises: Interrupted: a signal has arrived at one of the ranks.
        Raises: FailedElsewhere: a rank has called `leave`.
        """
        answers = self.world.exchange((self.signals.pending, False, message))
        for number, leaves, _ in answers:
            if number is not None:
                raise Interrupted(number)
            if leaves:
                raise FailedElsewhere
        return [answer for _, _, answer in answers]

    def poll(self) -> None:
        """Raise `Interrupted` if a signal has arrived. Several ranks wait for their next message."""
        if self.world.processes == 1:
            self.signals.poll()

    def check_same(self, fact: Any, difference: str) -> None:
        """Check that a fact is the same on all ranks.

        Raises: UserError: this rank has another one than the main rank; `difference` says what that means.
        """
        if self.exchange(fact)[0] != fact:
            raise UserError(difference)

    def leave(self) -> bool:
        """End the work of the other ranks, at their next message. Return whether this rank is the first of
        those that leave, which says why."""
        if self.world.processes == 1:
            return True
        leaving = [leaves for _, leaves, _ in self.world.exchange((None, True, None))]
        return leaving.index(True) == self.world.process

    @contextmanager
    def ending_together(self) -> Iterator[None]:
        """Return a context for work that ends on all ranks if it fails on some. The first of these says why.

        Raises: RankLost: another rank has failed or ended.
        """
        try:
            yield
        except FailedElsewhere:
            raise lost_rank() from None
        except Exception:
            says_why = True
            with suppress(RankLost):  # the others may have ended before
                says_why = self.leave()
            if says_why:
                raise
            raise lost_rank() from None


ALONE = Agreement(ONE_PROCESS, SignalHandler())
"""That of a single process, to which no signals come."""
