"""Starts the ranks of a command on this machine, by torch's elastic agent, and ends them together."""

import logging
import os
import sys
import uuid
from signal import SIGTERM, Signals

from foveal.core.errors import RunFailed, UserError
from foveal.distributed.world import LOST_RANK_CODE

SHUTDOWN_SECONDS = 300
"""The longest time for the ranks to save a checkpoint after a signal."""
PACKAGE = __name__.partition(".")[0]


def launch(ranks: int, arguments: list[str]) -> None:
    """Run the command `foveal ARGUMENTS` in `ranks` processes on this machine.

    A process has its share of the machine's cores as threads, unless OMP_NUM_THREADS says how many.

    Raises: UserError: the number of ranks is below 1.
    Raises: RunFailed: a rank was killed.
    Raises: SystemExit: a rank failed, and has said why, or a signal came.
    """
    if ranks < 1:
        raise UserError(f"--ranks {ranks}: expected a number from 1 on")
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    threads = max(1, len(os.sched_getaffinity(0)) // ranks) if hasattr(os, "sched_getaffinity") else 1
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    _silence_torch()
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=ranks,
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=0,
        shutdown_timeout=SHUTDOWN_SECONDS,
    )
    try:
        elastic_launch(config, sys.executable)("-m", PACKAGE, *arguments)
    except ChildFailedError as failed:
        codes = {rank: failure.exitcode for rank, failure in sorted(failed.failures.items())}
        for rank, code in codes.items():
            if code < 0 and code != -SIGTERM:  # the agent ends the others by SIGTERM
                raise RunFailed(
                    f"rank {rank} was ended by {Signals(-code).name}, so all {ranks} ranks are stopped; the "
                    f"last checkpoint stays: foveal resume RUN --ranks {ranks}"
                ) from None
        own = (code for code in codes.values() if code > 0 and code != LOST_RANK_CODE)
        raise SystemExit(next(own, 1)) from None
    except SignalException as stop:
        raise SystemExit(128 + stop.sigval) from None


def _silence_torch() -> None:
    """Keep the agent's log lines off the screen: a failed rank says in one line what happened."""
    logging.disable()
    os.environ["TORCH_CPP_LOG_LEVEL"] = "ERROR"
