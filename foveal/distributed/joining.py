"""How the processes of a job find each other: at a store, which rank 0 or torch's agent serves.

The waits are Python's, so a signal ends them at once, and what is wrong is a line of ours. Those of
`torch.distributed.rendezvous` are in C++: they keep signals away, and print its stack.
"""

import errno
import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from queue import Empty, SimpleQueue

from torch.distributed import TCPStore  # type: ignore[attr-defined]
from torch.distributed.distributed_c10d import PrefixStore, Store

from foveal.core.errors import UserError
from foveal.core.rank import number_in_variable, world_size

JOIN_SECONDS = 120.0
"""The longest wait for the other processes of a job: its machines start at different times."""
TIMEOUT = timedelta(minutes=10)
"""The longest wait for another rank: for data that are prepared, or an output that is scored."""
TRY_SECONDS = 0.2
VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True)
class Place:
    """Which of the processes this one is, and where they meet."""

    rank: int
    size: int
    host: str
    port: int

    @property
    def rank_0(self) -> str:
        """Return the name and the address of rank 0, for messages."""
        return f"rank 0 at {self.host}:{self.port}"


def join_store() -> tuple[TCPStore, int, int]:
    """Return the store that all processes of the job share, the number of this process, and that of all. All
    are there then.

    Raises: UserError: a variable is missing, the port is in use, or a process did not come in time.
    """
    place, deadline = read_place(), time.monotonic() + JOIN_SECONDS
    if place.rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        store = _serve(place)
    else:
        _await_rank_0(place, deadline)
        store = _connect(place, deadline)
    _await_all(PrefixStore("joined", store), place, deadline)
    return store, place.rank, place.size


def read_place() -> Place:
    """Return the place of this process, which torchrun writes into the environment.

    Raises: UserError: a variable is missing, or is no such number.
    """
    missing = [name for name in VARIABLES if not os.environ.get(name)]
    if missing:
        raise UserError(
            f"WORLD_SIZE={os.environ.get('WORLD_SIZE')} without {' and '.join(missing)}: set "
            f"{', '.join(VARIABLES)}, as torchrun does; or unset WORLD_SIZE"
        )
    size = world_size()
    rank, port = number_in_variable("RANK", 0, size - 1), number_in_variable("MASTER_PORT", 1, 65535)
    return Place(rank, size, os.environ["MASTER_ADDR"], port)


def _serve(place: Place) -> TCPStore:
    """Return the store of the job, which this process serves.

    Raises: UserError: the port can't be opened.
    """
    try:
        listener = (
            socket.create_server(("", place.port), family=socket.AF_INET6, dualstack_ipv6=True)
            if socket.has_dualstack_ipv6()
            else socket.create_server(("", place.port))
        )
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UserError(f"port {place.port} is in use: set another MASTER_PORT for all ranks") from None
        raise UserError(f"MASTER_PORT={place.port}: {error.strerror}: set another one") from None
    descriptor = listener.detach()  # the store closes it
    return TCPStore(
        *(place.host, place.port, place.size, True, TIMEOUT),
        wait_for_workers=False,
        master_listen_fd=descriptor,
    )


def _await_rank_0(place: Place, deadline: float) -> None:
    """Wait until something answers at the address of the store.

    Raises: UserError: nothing does.
    """
    while True:
        try:
            wait = max(TRY_SECONDS, deadline - time.monotonic())
            return socket.create_connection((place.host, place.port), wait).close()
        except OSError as error:  # rank 0 has not begun, or its machine has no name yet
            if time.monotonic() + TRY_SECONDS > deadline:
                raise UserError(
                    f"{place.rank_0} does not answer: {error.strerror or error}; waited {JOIN_SECONDS:g} s: "
                    "start rank 0, or set MASTER_ADDR and MASTER_PORT"
                ) from None
        time.sleep(TRY_SECONDS)


def _connect(place: Place, deadline: float) -> TCPStore:
    """Return the store that rank 0 serves.

    Raises: UserError: another program answers in its place.
    """
    seconds = max(TRY_SECONDS, deadline - time.monotonic())
    tries = timedelta(seconds=seconds / 2)  # no thread tries on when the process ends
    store = _within(
        seconds, lambda: TCPStore(place.host, place.port, place.size, False, tries, wait_for_workers=False)
    )
    if store is None:
        raise UserError(
            f"{place.rank_0} does not answer as one: another program uses the port; set another MASTER_PORT "
            "for all ranks"
        )
    store.set_timeout(TIMEOUT)
    return store


def _within(seconds: float, connect: Callable[[], TCPStore]) -> TCPStore | None:
    """Return the store of `connect`, which may wait without end in C++; None after some seconds."""
    made: SimpleQueue[TCPStore | RuntimeError] = SimpleQueue()

    def work() -> None:
        try:
            made.put(connect())
        except RuntimeError as error:
            made.put(error)

    threading.Thread(target=work, daemon=True).start()
    try:
        result = made.get(timeout=seconds)
    except Empty:
        return None
    return None if isinstance(result, RuntimeError) else result


def _await_all(store: Store, place: Place, deadline: float) -> None:
    """Wait until all processes have come to the store.

    Raises: UserError: one did not.
    """
    store.set(str(place.rank), "")
    everyone = [str(rank) for rank in range(place.size)]
    while not store.check(everyone):
        if time.monotonic() > deadline:
            first = next((rank for rank in everyone if not store.check([rank])), "")
            raise UserError(
                f"rank {first} of {place.size} did not come to {place.rank_0} in {JOIN_SECONDS:g} s: start "
                f"it with RANK={first} WORLD_SIZE={place.size} MASTER_ADDR={place.host} "
                f"MASTER_PORT={place.port}"
            )
        time.sleep(TRY_SECONDS / 4)
