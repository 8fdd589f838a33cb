"""Signs of life that each rank gives once a second, so that a frozen rank ends the job.

A killed rank closes its connections, and the others see that at once. A frozen one (a stopped process, a
machine without power, a broken network) closes nothing, and the others would wait for it until an exchange
times out.
"""

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from torch.distributed.distributed_c10d import Store

from foveal.core.log import Log

BEAT_SECONDS = 1.0
SILENCE_SECONDS = 8.0
"""A rank that gives no sign of life for this long is lost. A thread of its own gives the signs, whatever the
rank is working on."""
SILENT_RANK_CODE = 4
"""The exit code of a rank that has said which other rank is silent."""
LEFT = "left"


@contextmanager
def heartbeat(store: Store, rank: int, size: int, log: Log) -> Iterator[None]:
    """Return a context in which this rank gives signs of life, and looks for those of the others.

    If another rank is silent, the first rank that lives logs that, and this process ends. If the launcher is
    gone, this process gets SIGTERM, as from a launcher that ends: it saves, and ends.
    """
    pulse = _Pulse(store, rank, size, log)
    thread = threading.Thread(target=pulse.run, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        pulse.ended.set()
        thread.join(BEAT_SECONDS)


class _Pulse:
    """The signs of one rank, and when it saw the last ones of the others."""

    def __init__(self, store: Store, rank: int, size: int, log: Log):
        self.ended = threading.Event()
        self._store, self._rank, self._size, self._log = store, rank, size, log
        self._launcher = os.getppid()
        self._last: dict[int, tuple[bytes, float]] = {}
        """The last sign of each other rank, and when this rank saw it first."""

    def run(self) -> None:
        """Give signs until the context ends."""
        beats, before = 0, time.monotonic()
        try:
            self._store.set(f"process/{self._rank}", f"{_launcher()} {os.getpid()}")
            while not self.ended.wait(BEAT_SECONDS):
                beats, now = beats + 1, time.monotonic()
                self._store.set(f"beat/{self._rank}", str(beats))
                if now - before > SILENCE_SECONDS / 2:
                    self._last.clear()  # this rank was frozen itself, perhaps with all others
                before = now
                if silent := self._silent(now):
                    self._end(silent)
                if os.getppid() != self._launcher:
                    os.kill(os.getpid(), signal.SIGTERM)
                    return
            self._store.set(f"beat/{self._rank}", LEFT)
        except RuntimeError:  # the store is the launcher's
            if not self.ended.is_set():
                os.kill(os.getpid(), signal.SIGTERM)

    def _silent(self, now: float) -> list[int]:
        """Return the ranks without a new sign for too long."""
        others = [rank for rank in range(self._size) if rank != self._rank]
        keys = [f"beat/{rank}" for rank in others]
        if not self._store.check(keys):
            return []  # a rank has not begun
        for rank, sign in zip(others, self._store.multi_get(keys), strict=True):
            if rank not in self._last or self._last[rank][0] != sign:
                self._last[rank] = sign, now
        return [
            rank
            for rank, (sign, since) in self._last.items()
            if sign != LEFT.encode() and now - since > SILENCE_SECONDS
        ]

    def _end(self, silent: list[int]) -> None:
        """Log which ranks are silent, end those of the same launcher, and end this process."""
        if self._rank == min(set(range(self._size)).difference(silent)):
            names = ", ".join(map(str, silent))
            self._log(
                f"rank {names} gave no sign of life for {SILENCE_SECONDS:g} s, so all {self._size} ranks are "
                f"stopped; the last checkpoint stays: foveal resume RUN --ranks {self._size}"
            )
        for rank in silent:
            launcher, process = self._store.get(f"process/{rank}").decode().split()
            if launcher == _launcher():  # a number of a process of another machine means another one here
                with suppress(ProcessLookupError):
                    os.kill(int(process), signal.SIGKILL)
        os._exit(SILENT_RANK_CODE)


def _launcher() -> str:
    """Return a name of this process's launcher, which no launcher on another machine or in another container
    has."""
    names = [socket.gethostname(), str(os.getppid())]
    with suppress(OSError):
        names.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        names.append(str(Path("/proc/self/ns/pid").stat().st_ino))
    return "/".join(names)
