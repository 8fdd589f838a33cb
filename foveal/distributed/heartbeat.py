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
SILENCE_SECONDS = 20.0
"""A rank that gives no sign of life for this long is lost. A thread of its own gives the signs while the rank
works; a single call that holds Python's lock for so long would be taken for a frozen rank."""
SILENT_RANK_CODE = 4
"""The exit code of a rank that ends because another rank, or the store, is silent."""
LEFT = "left"


@contextmanager
def heartbeat(store: Store, rank: int, size: int, log: Log, advice: str) -> Iterator[None]:
    """Return a context in which this rank gives signs of life, and looks for those of the others.

    If another rank is silent, one of the others logs that with `advice`, and this process ends. So it does if
    the store is silent. If torch's agent, which has started this process, is gone, this process gets SIGTERM,
    as from an agent that ends: it saves, and ends.
    """
    pulse = _Pulse(store, rank, size, log, advice)
    threads = [threading.Thread(target=work, daemon=True) for work in (pulse.beat, pulse.watch_store)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        pulse.ended.set()
        for thread in threads:
            thread.join(BEAT_SECONDS)


class _Pulse:
    """The signs of one rank, and when it saw the last ones of the others."""

    def __init__(self, store: Store, rank: int, size: int, log: Log, advice: str):
        self.ended = threading.Event()
        self._store, self._rank, self._size = store, rank, size
        self._log, self._advice = log, advice
        self._agent = os.getppid() if "TORCHELASTIC_RUN_ID" in os.environ else None
        self._last: dict[int, tuple[bytes, float]] = {}
        """The last sign of each other rank, and when this rank saw it first."""
        self._last_round = time.monotonic()

    def beat(self) -> None:
        """Give signs until the context ends."""
        beats = 0
        try:
            self._store.set(f"process/{self._rank}", f"{_launcher()} {os.getpid()}")
            while not self.ended.wait(BEAT_SECONDS):
                beats += 1
                if time.monotonic() - self._last_round > SILENCE_SECONDS / 2:
                    self._last.clear()  # this rank was frozen itself, perhaps with all others
                self._store.set(f"beat/{self._rank}", str(beats))
                if silent := self._silent():
                    self._end(silent)
                self._last_round = time.monotonic()
                if self._agent not in (None, os.getppid()):
                    os.kill(os.getpid(), signal.SIGTERM)
                    return
            self._store.set(f"beat/{self._rank}", LEFT)
        except RuntimeError:  # the store is gone, with its agent
            if not self.ended.is_set():
                os.kill(os.getpid(), signal.SIGTERM)

    def watch_store(self) -> None:
        """End this process if the store does not answer, as that of a frozen machine."""
        before = time.monotonic()
        while not self.ended.wait(BEAT_SECONDS):
            now = time.monotonic()
            if now - before > SILENCE_SECONDS / 2:
                self._last_round = now  # this rank was frozen itself
            before = now
            if now - self._last_round > SILENCE_SECONDS:
                self._log(f"the ranks' store does not answer for {SILENCE_SECONDS:g} s, so this rank ends")
                os._exit(SILENT_RANK_CODE)

    def _silent(self) -> list[int]:
        """Return the ranks without a new sign for too long."""
        others = [rank for rank in range(self._size) if rank != self._rank]
        keys = [f"beat/{rank}" for rank in others]
        if not self._store.check(keys):
            return []  # a rank has not begun
        signs, now = self._store.multi_get(keys), time.monotonic()
        for rank, sign in zip(others, signs, strict=True):
            if rank not in self._last or self._last[rank][0] != sign:
                self._last[rank] = sign, now
        late = [rank for rank, (_, since) in self._last.items() if now - since > SILENCE_SECONDS]
        return [rank for rank in late if self._last[rank][0] != LEFT.encode()]

    def _end(self, silent: list[int]) -> None:
        """Log which ranks are silent, end those of the same launcher, and end this process."""
        if self._store.add("logged", 1) == 1:
            names = f"rank{'s' if len(silent) > 1 else ''} {', '.join(map(str, silent))}"
            self._log(
                f"{names} gave no sign of life for {SILENCE_SECONDS:g} s, so all {self._size} ranks are "
                f"stopped; {self._advice}"
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
