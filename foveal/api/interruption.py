"""Ctrl-C and SIGTERM in a training from Python."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from foveal.core.signals import Interrupted, SignalHandler, TrainingInterrupted
from foveal.distributed.launch import is_launched
from foveal.ui.console import log

_ONE_TRAINING = threading.RLock()


@contextmanager
def interruptible() -> Iterator[SignalHandler]:
    """Return a context in which Ctrl-C ends a training, which is saved: the code after the context goes on.

    Trainings in several threads wait for each other, since all draw from the random numbers of the process.

    Raises: Interrupted: a signal came to a rank of ours.
    Raises: KeyboardInterrupt: Ctrl-C came before the training had begun.
    Raises: SystemExit: the process is to end (SIGTERM).
    """
    with _ONE_TRAINING, SignalHandler() as signals:
        try:
            yield signals
        except Interrupted as stop:
            if is_launched():  # the launcher says what was saved
                raise
            has_begun = isinstance(stop, TrainingInterrupted)
            if has_begun:
                log(str(stop))
            if stop.number != signal.SIGINT:
                raise SystemExit(stop.exit_code) from None
            if not has_begun:
                raise KeyboardInterrupt from None
