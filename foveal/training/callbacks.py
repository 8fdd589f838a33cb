"""The list of a training's callbacks, which passes each event on, and names a callback that fails."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Concatenate, ParamSpec

from foveal.config import suggest
from foveal.core.callbacks import Callback, StopTraining
from foveal.core.errors import RunFailed, UserError
from foveal.core.signals import Interrupted

P = ParamSpec("P")
EVENTS = [name for name in vars(Callback) if name.startswith("on_")]
"""The names of all events."""


class CallbackFailed(RunFailed):
    """A callback raised an exception, which is the cause of this one."""


class CallbackList:
    """Calls callbacks in their order.

    `end` is what `on_end` is called with. The block of `running` may enclose the training and the test after
    training; `on_end` is called when the outermost block ends.
    """

    def __init__(self, callbacks: Iterable[Any] = ()):
        self.callbacks = list(callbacks)
        self.end: dict[str, Any] = {}
        self.stops = False
        """Whether a callback has asked to end the training."""
        self._depth = 0

    def add_first(self, callback: Any) -> None:
        """Call one more callback, before the others."""
        self.callbacks.insert(0, callback)

    def emit(
        self, event: Callable[Concatenate[Any, P], None], *arguments: P.args, **keywords: P.kwargs
    ) -> None:
        """Call the method `event` of every callback. `event` is given as that of the base class.

        Raises: CallbackFailed: a callback raised an exception; the error names the callback.
        """
        for callback in self.callbacks:
            try:
                if (method := getattr(callback, event.__name__, None)) is not None:
                    method(*arguments, **keywords)
            except StopTraining:
                self.stops = True
            except (RunFailed, UserError):
                raise
            except Exception as error:
                reason = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
                where = f"{type(callback).__name__}.{event.__name__}"
                raise CallbackFailed(f"the callback {where} failed: {reason}") from error

    @contextmanager
    def running(self) -> Iterator[None]:
        """Return a context at whose end `on_end` is called, after an exception with the reason `stopped` or
        `failed`."""
        self._depth += 1
        try:
            yield
        except BaseException as error:
            reason = "stopped" if isinstance(error, (Interrupted, KeyboardInterrupt)) else "failed"
            with suppress(CallbackFailed):  # the first exception counts
                self._end({"reason": reason})
            raise
        self._end({})

    def _end(self, more: dict[str, Any]) -> None:
        """Call `on_end` of every callback if the outermost block ends, and a training has begun in it.

        Raises: CallbackFailed: a callback raised an exception; all others were called.
        """
        self._depth -= 1
        if self._depth or not self.end:
            return
        record, self.end = self.end | more, {}
        with ExitStack() as each:
            for callback in reversed(self.callbacks):
                each.callback(CallbackList([callback]).emit, Callback.on_end, record)


def check_callbacks(callbacks: object) -> list[Any]:
    """Return the callbacks of a user: one object or several, with any of the methods of `Callback`.

    Raises: UserError: an object is no callback, or it has a method for an event that there is not.
    """
    if isinstance(callbacks, str) or has_event(callbacks) or not isinstance(callbacks, Iterable):
        callbacks = (callbacks,)
    return [_check_callback(callback) for callback in callbacks]


def has_event(value: object) -> bool:
    """Return whether an object or class has a method for an event."""
    return any(callable(getattr(value, name, None)) for name in EVENTS)


def _check_callback(callback: Any) -> Any:
    """Return a callback.

    Raises: UserError: it is none, or it has a method for an event that there is not.
    """
    is_class = isinstance(callback, type)
    name = callback.__name__ if is_class else type(callback).__name__
    if is_class and has_event(callback):
        raise UserError(f"callbacks: expected an object: {name}(), not {name}")
    for method in dir(callback if is_class else type(callback)):
        if method.startswith("on_") and method not in EVENTS:
            raise UserError(f"callbacks: {name}.{method}: no such event{suggest(method, EVENTS)}")
    if not has_event(callback):
        raise UserError(
            f"callbacks: expected objects with methods such as on_step (those of foveal.Callback), not {name}"
        )
    return callback
