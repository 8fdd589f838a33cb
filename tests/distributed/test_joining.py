"""Processes that do not find each other say why in one line, and a signal ends their waiting."""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from foveal.core.errors import UserError
from foveal.core.signals import Interrupted, SignalHandler, signals_end_at_once
from foveal.distributed import joining
from foveal.distributed.joining import VARIABLES, Place, join_store

SetPlace = Callable[..., None]


@pytest.fixture
def set_place(monkeypatch: pytest.MonkeyPatch) -> SetPlace:
    monkeypatch.setattr(joining, "JOIN_SECONDS", 0.5)
    monkeypatch.setattr(joining, "TRY_SECONDS", 0.05)
    monkeypatch.delenv("TORCHELASTIC_USE_AGENT_STORE", raising=False)

    def set_variables(*values: object) -> None:
        for name, value in zip(VARIABLES, values, strict=True):
            monkeypatch.setenv(name, str(value))

    return set_variables


@pytest.fixture
def taken() -> Iterator[int]:
    """The port of another program, which accepts and says nothing."""
    with socket.create_server(("", 0)) as listener:
        yield listener.getsockname()[1]


def free_port() -> int:
    with socket.create_server(("", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((0, 2, "", ""), "WORLD_SIZE=2 without MASTER_ADDR and MASTER_PORT: set RANK, WORLD_SIZE, MASTER_A"),
        (("", 2, "here", 29500), "WORLD_SIZE=2 without RANK: "),
        ((2, 2, "here", 29500), "RANK=2: expected a number from 0 to 1"),
        ((0, 2, "here", 0), "MASTER_PORT=0: expected a number from 1 to 65535"),
        ((0, 2, "here", "web"), "MASTER_PORT=web: expected a number from 1 to 65535"),
    ],
)
def test_a_wrong_variable_is_named(set_place: SetPlace, values: tuple[object, ...], message: str) -> None:
    set_place(*values)
    with pytest.raises(UserError) as refusal:
        join_store()
    assert str(refusal.value).startswith(message)


def test_a_port_in_use(set_place: SetPlace, taken: int) -> None:
    set_place(0, 2, "localhost", taken)
    with pytest.raises(UserError, match=f"^port {taken} is in use: set another MASTER_PORT for all ranks$"):
        join_store()


def test_another_program_in_place_of_rank_0(set_place: SetPlace, taken: int) -> None:
    set_place(1, 2, "localhost", taken)
    with pytest.raises(UserError, match=f"rank 0 at localhost:{taken} does not answer as one: another prog"):
        join_store()


@pytest.mark.parametrize("host", ["localhost", "no-such-machine.invalid"])
def test_a_rank_0_that_does_not_answer(set_place: SetPlace, host: str) -> None:
    set_place(1, 2, host, free_port())
    with pytest.raises(UserError, match=rf"^rank 0 at {host}:\d+ does not answer: .*waited 0.5 s: start"):
        join_store()


def test_a_rank_that_does_not_come(set_place: SetPlace) -> None:
    port = free_port()
    set_place(0, 2, "localhost", port)
    with pytest.raises(UserError, match=f"^rank 1 of 2 did not come to rank 0 at localhost:{port} in 0.5 s"):
        join_store()


def test_ranks_meet_in_any_order(set_place: SetPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "JOIN_SECONDS", 20.0)
    set_place(0, 3, "localhost", port := free_port())
    places = {f"rank {rank}": Place(rank, 3, "localhost", port) for rank in range(3)}
    monkeypatch.setattr(joining, "read_place", lambda: places[threading.current_thread().name])
    joined: list[object] = []
    stores: list[object] = []  # that of rank 0 serves the others

    def join() -> None:
        store, rank, size = join_store()
        stores.append(store)
        store.set(f"word of {rank}", str(rank))
        joined.append((size, b"".join(store.get(f"word of {other}") for other in range(3))))

    threads = [threading.Thread(target=join, name=f"rank {rank}") for rank in (2, 0, 1)]
    for thread in threads:
        thread.start()
        time.sleep(0.1)
    for thread in threads:
        thread.join()
    assert joined == [(3, b"012")] * 3


def test_a_signal_ends_the_waiting(set_place: SetPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "JOIN_SECONDS", 20.0)
    set_place(1, 2, "localhost", free_port())
    since = time.monotonic()
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM)).start()
    with pytest.raises(Interrupted), SignalHandler():
        join_store()
    assert time.monotonic() - since < 5


def test_a_signal_ends_a_call_that_does_not_return() -> None:
    with SignalHandler():
        ours = signal.getsignal(signal.SIGTERM)
        with signals_end_at_once():
            assert signal.getsignal(signal.SIGINT) == signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) == ours
