"""Taps: named values inside layers, computed only while somebody listens.

A layer calls `self.tap("weights", lambda: ...)`. Unless a listener is active, the call costs a look-up and
computes nothing, so fused kernels stay in use. `foveal.capture` is the listener of users.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor, nn


class TapSite(NamedTuple):
    """The names of a value's axes, and what the value is."""

    dims: tuple[str, ...]
    meaning: str


TAP_SITES = {
    "weights": TapSite(
        ("batch", "head", "query", "key"),
        "attention weights after the softmax (B, H, T, S), recomputed from queries and keys; "
        "hard attention has 1 at the sampled position; a classifier's pooling has T = H = 1",
    ),
    "hidden": TapSite(("batch", "time", "unit"), "outputs of a recurrent mixer (B, T, D)"),
    "h": TapSite(("batch", "time", "unit"), "state of a recurrent cell after each step (B, T, D)"),
    "c": TapSite(("batch", "time", "unit"), "cell state of an LSTM after each step (B, T, D)"),
    "i": TapSite(("batch", "time", "unit"), "input gate of an LSTM at each step (B, T, D)"),
    "f": TapSite(("batch", "time", "unit"), "forget gate of an LSTM at each step (B, T, D)"),
    "g": TapSite(("batch", "time", "unit"), "new values of an LSTM at each step, -1 to 1 (B, T, D)"),
    "o": TapSite(("batch", "time", "unit"), "output gate of an LSTM at each step (B, T, D)"),
    "r": TapSite(("batch", "time", "unit"), "reset gate of a GRU at each step (B, T, D)"),
    "z": TapSite(("batch", "time", "unit"), "update gate of a GRU at each step, 1 keeps the state (B, T, D)"),
    "delta": TapSite(("batch", "time", "channel"), "Mamba's step sizes (B, T, E)"),
    "u": TapSite(("batch", "time", "channel"), "inputs of Mamba's scan, after its convolution (B, T, E)"),
    "B": TapSite(("batch", "time", "state"), "Mamba's weights from inputs to states (B, T, N)"),
    "C": TapSite(("batch", "time", "state"), "Mamba's weights from states to outputs (B, T, N)"),
    "y": TapSite(("batch", "time", "channel"), "outputs of Mamba's scan, before skip and gate (B, T, E)"),
    "receptance": TapSite(("batch", "time", "unit"), "RWKV's gate after the sigmoid (B, T, D)"),
    "features": TapSite(("batch", "time", "unit"), "output of a block (B, T, D)"),
    "counts": TapSite(("expert",), "tokens sent to each expert (E,)"),
    "gates": TapSite(
        ("batch", "time", "expert"), "gates of the experts (B, T, E), 0 where a token is not sent"
    ),
    "output": TapSite(
        (), "output of any module, also of other libraries; the first tensor if there are several"
    ),
}
"""Every site that the layers of Foveal offer, and `output`, which every module has."""


@dataclass(frozen=True)
class StepStates:
    """A part of the state after each step of a recurrence, as the tensors that the recurrence goes on from.

    The gradient of such a tensor is that of all later steps, because they all depend on it.
    """

    steps: list[Tensor]
    lengths: Tensor | None

    def stacked(self) -> Tensor:
        """Return all steps (B, T, D), with zeros after each row's length."""
        states = torch.stack(self.steps, 1)
        if self.lengths is None:
            return states
        inside = torch.arange(len(self.steps), device=states.device) < self.lengths[:, None]
        return states.where(inside[:, :, None], 0.0)


@runtime_checkable
class TapListener(Protocol):
    """Whoever wants values of taps."""

    def wants(self, module: nn.Module, site: str) -> bool:
        """Return whether this value is to be computed and received."""

    def receive(self, module: nn.Module, site: str, value: Any) -> None:
        """Receive a value: a tensor, `StepStates` or an `AttentionMap`."""


_listener: ContextVar[TapListener | None] = ContextVar("tap_listener", default=None)


class _BothListeners:
    """A listener inside the block of another: each gets what it wants."""

    def __init__(self, outer: TapListener, inner: TapListener):
        self._listeners = outer, inner

    def wants(self, module: nn.Module, site: str) -> bool:
        wanted = [listener.wants(module, site) for listener in self._listeners]  # each notes what it is asked
        return any(wanted)

    def receive(self, module: nn.Module, site: str, value: Any) -> None:
        for listener in self._listeners:
            if listener.wants(module, site):
                listener.receive(module, site, value)


@contextmanager
def listen(listener: TapListener) -> Iterator[None]:
    """Give the values of all taps in this thread to a listener, and to those that listen already."""
    outer = _listener.get()
    token = _listener.set(listener if outer is None else _BothListeners(outer, listener))
    try:
        yield
    finally:
        _listener.reset(token)


def is_capturing() -> bool:
    """Return whether a listener is active, so that layers must not be fused."""
    return _active_listener() is not None


def _active_listener() -> TapListener | None:
    # torch.compile cannot trace the look-up. `foveal.capture` runs compiled modules eagerly.
    return None if torch.compiler.is_compiling() else _listener.get()


class TappedModule(nn.Module):
    """A module with taps."""

    def has_listener(self, site: str) -> bool:
        """Return whether a listener wants the value of a site."""
        listener = _active_listener()
        return listener is not None and listener.wants(self, site)

    def tap(self, site: str, compute: Callable[[], Any]) -> None:
        """Compute the value of a site if a listener wants it."""
        listener = _active_listener()
        if listener is not None and listener.wants(self, site):
            listener.receive(self, site, compute())
