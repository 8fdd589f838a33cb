"""Taps: named values inside layers, computed only while they are captured.

A layer calls `self.tap("weights", lambda: ...)`. Unless a `capture` is open, the call costs a look-up and
computes nothing, so fused kernels stay in use. The name of a value is `<module path>/<site>`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from fnmatch import fnmatch

from torch import Tensor, nn

TAP_SITES = {
    "weights": "attention weights after the softmax (B, H, T, S), recomputed from queries and keys; "
    "hard attention has 1 at the sampled position; a classifier's pooling has T = H = 1",
    "hidden": "outputs of a recurrent mixer (B, T, D)",
    "delta": "Mamba's step sizes (B, T, E)",
    "receptance": "RWKV's gate after the sigmoid (B, T, D)",
    "features": "output of a block (B, T, D)",
    "counts": "tokens sent to each expert (E,)",
    "gates": "gates of the experts (B, T, E), 0 where a token is not sent",
}
"""Every site that the layers of Foveal offer."""


class Capture(dict[str, list[Tensor]]):
    """The captured values: name -> one detached tensor for each call."""

    def __init__(self, model: nn.Module, patterns: tuple[str, ...]):
        super().__init__()
        self._paths = {id(module): path for path, module in model.named_modules()}
        self._patterns = patterns

    def record(self, module: nn.Module, site: str, compute: Callable[[], Tensor]) -> None:
        """Compute and keep a value if its name matches a pattern."""
        path = self._paths.get(id(module))
        name = f"{path}/{site}"
        if path is not None and any(fnmatch(name, pattern) for pattern in self._patterns):
            self.setdefault(name, []).append(compute().detach())


_open: ContextVar[Capture | None] = ContextVar("capture", default=None)


@contextmanager
def capture(model: nn.Module, *patterns: str) -> Iterator[Capture]:
    """Record the taps of `model` whose names match one of `patterns` (shell patterns; none means all)."""
    captured = Capture(model, patterns or ("*",))
    token = _open.set(captured)
    try:
        yield captured
    finally:
        _open.reset(token)


def is_capturing() -> bool:
    """Return whether a capture is open, so that layers must not be fused."""
    return _open.get() is not None


class TappedModule(nn.Module):
    """A module with taps."""

    def tap(self, site: str, compute: Callable[[], Tensor]) -> None:
        """Record a value if a capture is open."""
        captured = _open.get()
        if captured is not None:
            captured.record(self, site, compute)
