"""Views that are computed for the page: one at a time, in a thread, and kept for a while."""

import queue
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from foveal.inspection.page.encoded import EncodedPayload
from foveal.ui.wording import reword

KEPT = 6
"""Results of which tiles can be asked for. The payload of a large one takes hundreds of megabytes."""


class Canceled(Exception):
    """The browser that asked for a view is gone."""


class NotThere(Exception):
    """The page asks for a run or a result by a number that there is not, or no longer."""


@dataclass
class Computation:
    """A view that is computed, or waits for its turn."""

    work: Callable[["Computation"], EncodedPayload]
    result: "Future[int]" = field(default_factory=Future)
    notes: list[str] = field(default_factory=list)
    """The lines of its log."""
    sent: Mapping[str, str] = field(default_factory=dict)
    """The names of sent files, by their paths, which mean nothing to the user."""
    done: int = 0
    total: int = 0
    noun: str = ""
    is_canceled: bool = False

    def log(self, line: str) -> None:
        """Keep a line for the page, in its words."""
        self.notes.append(reword(line))

    def progress(self, index: int, total: int) -> None:
        """Keep how far the work is.

        Raises: Canceled: nobody waits for it any more.
        """
        self.done, self.total = index, total
        if self.is_canceled:
            raise Canceled


class Computations:
    """A thread that computes one view after another, and the newest results by number.

    The thread is a daemon, so that the command ends at once.
    """

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[Computation] = queue.SimpleQueue()
        self._results: OrderedDict[int, EncodedPayload] = OrderedDict()
        self._count = 0
        self.current: Computation | None = None
        threading.Thread(target=self._work, name="views", daemon=True).start()

    def submit(self, work: Callable[[Computation], EncodedPayload]) -> Computation:
        """Have a view computed when those before it are done."""
        computation = Computation(work)
        self._waiting.put(computation)
        return computation

    def result(self, number: int) -> EncodedPayload:
        """Return a kept result.

        Raises: NotThere: the result is not kept any more.
        """
        try:
            return self._results[number]
        except KeyError:
            raise NotThere("this result is no longer kept; show the view again") from None

    def _work(self) -> None:
        while True:
            computation = self._waiting.get()
            self.current = computation
            try:
                if computation.is_canceled:
                    raise Canceled
                encoded = computation.work(computation)
            except BaseException as error:  # the thread goes on, and whoever waits gets the error
                computation.result.set_exception(error)
            else:
                computation.result.set_result(self._keep(encoded))
            finally:
                self.current = None

    def _keep(self, encoded: EncodedPayload) -> int:
        self._count += 1
        self._results[self._count] = encoded
        while len(self._results) > KEPT:
            self._results.popitem(last=False)
        return self._count

    def state(self) -> dict[str, Any]:
        """Return how far the current work is."""
        current = self.current
        if current is None:
            return {"running": False}
        return {"running": True, "done": current.done, "total": current.total, "noun": current.noun}
