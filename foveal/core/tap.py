"""Taps: named values inside layers, made only while somebody looks.

A layer says `self.tap("weights", lambda: ...)`. Unless a `capture` is open that is one look-up and no
work at all, so fused kernels stay on. The name of a value is `<module path>/<site>`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from fnmatch import fnmatch

from torch import Tensor, nn

TAP_SITES = {
    "weights": "attention's weights after the softmax (B, H, T, S), recomputed from queries and keys; "
    "hard attention's are 1 at the place it looked at; of a classifier's pooling T = H = 1",
    "hidden": "a recurrent mixer's outputs (B, T, D)",
    "delta": "Mamba's time steps (B, T, E)",
    "receptance": "RWKV's gate after the sigmoid (B, T, D)",
    "features": "a block's output (B, T, D)",
    "counts": "tokens sent to each expert (E,)",
    "gates": "gates of the experts (B, T, E), 0 where a token is not sent",
}
"""Every site that a layer of Foveal offers."""


class Capture(dict[str, list[Tensor]]):
    """The values seen while open: name -> one tensor a call, detached."""

    def __init__(self, model: nn.Module, patterns: tuple[str, ...]):
        super().__init__()
        self._paths = {id(module): path for path, module in model.named_modules()}
        self._patterns = patterns

    def record(self, module: nn.Module, site: str, compute: Callable[[], Tensor]) -> None:
        path = self._paths.get(id(module))
        name = f"{path}/{site}"
        if path is not None and any(fnmatch(name, pattern) for pattern in self._patterns):
            self.setdefault(name, []).append(compute().detach())


_open: ContextVar[Capture | None] = ContextVar("capture", default=None)


@contextmanager
def capture(model: nn.Module, *patterns: str) -> Iterator[Capture]:
    """Record the taps of `model` whose name matches one of `patterns` (shell patterns; none means all)."""
    seen = Capture(model, patterns or ("*",))
    token = _open.set(seen)
    try:
        yield seen
    finally:
        _open.reset(token)


def is_capturing() -> bool:
    """Whether anybody looks, so that layers may not be computed in one piece."""
    return _open.get() is not None


class TappedModule(nn.Module):
    """A module that offers taps."""

    def tap(self, site: str, compute: Callable[[], Tensor]) -> None:
        seen = _open.get()
        if seen is not None:
            seen.record(self, site, compute)
